#include "core/context_shift.h"

#include <algorithm>
#include <iterator>

namespace paddock {

namespace {

/// Tokens of a context that are never kept, so that there is something to discard (10 §9.2).
constexpr std::int64_t n_free = 4;

}  // namespace

ShiftPlan plan_shift(std::int32_t n_tokens, std::int32_t n_ctx, std::int32_t n_keep, std::int32_t n_discard,
                     std::int32_t n_prompt, bool adds_bos) {
    // 64 bits: a client may ask to keep as many tokens as an integer can say.
    const std::int64_t asked = std::int64_t{n_keep < 0 ? n_prompt : n_keep} + (adds_bos ? 1 : 0);
    const std::int64_t keep = std::max<std::int64_t>(0, std::min(n_ctx - n_free, asked));
    const std::int64_t left = std::max<std::int64_t>(1, n_tokens - keep);
    const std::int64_t discard = std::clamp<std::int64_t>(n_discard == 0 ? left / 2 : n_discard, 1, left);
    return {.keep = static_cast<std::int32_t>(keep), .discard = static_cast<std::int32_t>(discard)};
}

bool apply_shift(Context& context, SequenceId sequence, PromptRecord& record, const ShiftPlan& plan) {
    const auto n_tokens = static_cast<Position>(record.tokens.size());
    const Position behind = std::min(n_tokens, plan.keep + plan.discard);
    const bool could_remove = context.remove(sequence, plan.keep, behind);
    if (could_remove) {
        context.shift(sequence, behind, n_tokens, plan.keep - behind);
    } else {
        context.remove(sequence, 0, end_position);
    }
    const auto first = std::next(record.tokens.begin(), std::min(plan.keep, n_tokens));
    record.tokens.erase(first, std::next(record.tokens.begin(), behind));
    drop_checkpoints_from(record, plan.keep);
    return could_remove;
}

}  // namespace paddock
