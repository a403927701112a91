// When and how the state of a prompt is kept, for memories that can't be cut back freely (10 §11).
#pragma once

#include <cstdint>

#include "core/context.h"
#include "core/prompt_record.h"

namespace paddock {

/// Whether a completion on this context takes checkpoints at all (10 §11.2).
bool uses_checkpoints(const ContextFacts& facts, std::int32_t n_ctx_checkpoints);

/// Whether a visit ends when this many tokens of the prompt remain (10 §11.3).
bool is_cut(std::int32_t remaining, const ContextFacts& facts);

/// A visit that was filled and is not decoded yet. Counts in tokens.
struct CheckpointInputs {
    const ContextFacts& facts;
    /// Length of the list once the visit is decoded, and rows of the slot in it.
    std::int32_t n_list = 0;
    std::int32_t n_rows = 0;
    std::int32_t n_prompt = 0;
    /// Distance between checkpoints inside a prompt; negative: none there.
    std::int32_t min_step = -1;
    /// Smallest position in memory; -1: it is empty.
    Position pos_min = -1;
};

/// Whether the state before the visit is worth keeping (10 §11.4-11.5).
bool wants_checkpoint(const CheckpointInputs& inputs, const PromptRecord& record);

struct CheckpointCounts {
    std::int32_t created = 0;
    std::int32_t evicted = 0;
};

/// Keeps the state that memory is in now, before the rows of a visit are decoded and in the list (10 §11.6).
/// The oldest go so that at most `limit` remain. Nothing is created, and nothing goes, when the state can't
/// be read.
CheckpointCounts add_checkpoint(Context& context, SequenceId sequence, PromptRecord& record,
                                std::int32_t limit);

}  // namespace paddock
