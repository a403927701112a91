// Makes room in a full slot by discarding tokens behind the part that is kept (10 §9).
#pragma once

#include <cstdint>

#include "core/context.h"
#include "core/prompt_record.h"

namespace paddock {

/// Tokens [keep, keep + discard) go, and those behind them move up.
struct ShiftPlan {
    std::int32_t keep = 0;
    std::int32_t discard = 0;
};

/// Counts in tokens. `n_keep` negative: the whole prompt; `n_discard` 0: half of what may go (10 §9.2).
ShiftPlan plan_shift(std::int32_t n_tokens, std::int32_t n_ctx, std::int32_t n_keep, std::int32_t n_discard,
                     std::int32_t n_prompt, bool adds_bos);

/// Carries it out on memory and list; checkpoints of discarded or moved positions go (10 §9.3-9.4). False:
/// the memory refused, and is empty now; the list is the one to refill it from (10 §14.7).
[[nodiscard]] bool apply_shift(Context& context, SequenceId sequence, PromptRecord& record,
                               const ShiftPlan& plan);

}  // namespace paddock
