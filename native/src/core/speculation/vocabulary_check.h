// Whether a drafter speaks the target's tokens (11 §5.2).
#pragma once

#include <optional>
#include <string>

#include "core/vocabulary.h"

namespace paddock {

struct VocabularyMismatch {
    /// Of 11 §3.4: `vocab-type`, `vocab-bos`, `vocab-eos`, `vocab-size` or `vocab-text`.
    std::string reason;
    /// Both sides, for a person.
    std::string detail;
};

/// The first difference that forbids drafting; none: the drafter fits. Texts are not translated.
std::optional<VocabularyMismatch> mismatch_of(const Vocabulary& target, const Vocabulary& drafter);

}  // namespace paddock
