// What the scheduler needs of a decoding context. One implementation drives libllama; tests bring their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/types.h"

namespace paddock {

/// How the memory lets go of single tokens, found by a probe at load (10 §3.5).
enum class Removal { none, recurrent, partial, full };

struct BatchRow {
    Token token = 0;
    Position position = 0;
    SequenceId sequence = 0;
    /// Whether logits (or an embedding) are wanted for this row.
    bool output = false;
    /// Other sequences that hold this token, too; none but in trees (11 §12.7).
    std::vector<SequenceId> branches{};
};

/// Pooling as libllama numbers it: a vector for each token.
inline constexpr std::int32_t pooling_none = 0;

/// Fixed facts of a context, read back after it was made (10 §3.3-3.6).
struct ContextFacts {
    /// Tokens of the whole memory, and of one slot.
    std::int32_t n_ctx = 0;
    std::int32_t n_ctx_slot = 0;
    std::int32_t n_ctx_train = 0;
    /// Rows of a logical and of a physical batch.
    std::int32_t n_batch = 0;
    std::int32_t n_ubatch = 0;
    std::int32_t n_embd_out = 0;
    /// Tokens of the sliding window; 0: none, or kept in full.
    std::int32_t n_swa = 0;
    bool kv_unified = false;
    bool has_memory = true;
    bool can_shift = true;
    bool is_recurrent = false;
    bool is_hybrid = false;
    /// A token has more than one position: of models that look at pictures.
    bool has_multi_positions = false;
    Removal removal = Removal::partial;
    /// Tokens of the last decode that a running state can step back, once for each decode; 0: none.
    std::int32_t n_rs_seq = 0;
    /// What of sampling on the device the library can do: pick the best tokens of a row, and of several rows
    /// of a sequence (11 §2).
    bool backend_sampler = false;
    bool backend_multi_output = false;
    /// Sequences behind those of the slots, for side chains of drafts (11 §12.3).
    std::int32_t n_branch_ids = 0;
    /// Pooling as libllama numbers it: 0 none, 1 mean, 2 cls, 3 last, 4 rank.
    std::int32_t pooling = 0;
    std::int32_t n_classes = 1;
};

struct AdapterScale {
    std::int32_t adapter = 0;
    float scale = 0.0F;
    bool operator==(const AdapterScale&) const = default;
};

/// Used by one thread at a time: the loader's until the engine is ready, then the decode thread (10 §1.3).
class Context {
  public:
    virtual ~Context() = default;

    virtual const ContextFacts& facts() const = 0;

    /// Codes of llama_decode: 0 good, 1 no room, 2 aborted, -1 invalid batch, below: failed. At most
    /// `n_batch` rows.
    virtual std::int32_t decode(std::span<const BatchRow> rows) = 0;
    /// Logits of row `index` of the last decode, one for each token; empty when the row has none.
    virtual std::span<const float> logits(std::int32_t index) = 0;
    /// The vector of a row, or of a sequence (`pooling` other than none); empty when there is none.
    virtual std::span<const float> row_embedding(std::int32_t index) = 0;
    virtual std::span<const float> sequence_embedding(SequenceId sequence) = 0;
    virtual void set_embeddings(bool on) = 0;

    /// Removes [from, to) of a sequence, `end_position`: to the end. False: the memory can't.
    virtual bool remove(SequenceId sequence, Position from, Position to) = 0;
    virtual void shift(SequenceId sequence, Position from, Position to, Position delta) = 0;
    /// What a sequence holds in [begin, end), `end_position`: to the end, is in another one, too. Part of a
    /// sequence can be copied in unified memory only.
    virtual void copy(SequenceId from, SequenceId to, Position begin, Position end) = 0;
    /// Smallest and largest position held for a sequence; -1 when there is none.
    virtual Position position_min(SequenceId sequence) = 0;
    virtual Position position_max(SequenceId sequence) = 0;

    /// State of a sequence. `partial` leaves out what can be cut freely (recurrent and window state remain).
    /// An empty result, or false, says that the byte count was not the one announced.
    virtual std::size_t state_size(SequenceId sequence, bool partial) = 0;
    virtual std::vector<std::byte> read_state(SequenceId sequence, bool partial) = 0;
    virtual bool write_state(SequenceId sequence, std::span<const std::byte> state, bool partial) = 0;

    /// Bytes written, 0 when it failed.
    virtual std::size_t save_file(SequenceId sequence, const std::string& path,
                                  const std::vector<Token>& tokens) = 0;
    /// What keeps the file from being loaded, in words that go on after its name; nothing where its structure
    /// is sound.
    virtual std::optional<std::string> problem_of_file(const std::string& path, std::size_t capacity) = 0;
    /// Bytes read, 0 when it failed; REQUIRES that the file has no problem. Fills `tokens` with at most
    /// `capacity` of them.
    virtual std::size_t load_file(SequenceId sequence, const std::string& path, std::size_t capacity,
                                  std::vector<Token>& tokens) = 0;

    /// Adapters of the following decodes; scales of 0 are left out.
    virtual void set_adapters(std::span<const AdapterScale> scales) = 0;
};

}  // namespace paddock
