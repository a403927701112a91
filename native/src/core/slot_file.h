// Looks through a slot file before libllama reads it (10 §20.3): libllama takes room for as many cells as the
// file says there are, and cells at positions that nobody asks for can't be removed again.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace paddock {

/// The parts of a state, in the order of a file.
struct SlotFileParts {
    /// Caches with a cell for each token: one, two of a model with a sliding window, none of a recurrent one.
    std::size_t n_caches = 1;
    /// Behind them: a state that runs along.
    bool has_running_state = false;
};

/// What is wrong with the file, in words that go on after its name; nothing: libllama may read it.
/// `capacity`: tokens that fit into a slot.
///
/// The file: magic number, version, token count and tokens; for each cache how many streams there are, and of
/// each stream its cells, of which only one stream has any; each cell's position, and the sequences that it
/// belongs to; then keys and values. Numbers have 32 bits in this machine's byte order, sizes of rows 64.
std::optional<std::string> problem_of_slot_file(const std::string& path, std::size_t capacity,
                                                const SlotFileParts& parts);

}  // namespace paddock
