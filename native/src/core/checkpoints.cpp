#include "core/checkpoints.h"

#include <algorithm>
#include <new>
#include <utility>

namespace paddock {

namespace {

/// Tokens left of a prompt when it is cut, on top of a physical batch and alone: what differs between a
/// prompt and the next one is mostly its end (10 §11.3).
constexpr std::int32_t n_tail = 4;
constexpr std::int32_t min_list = 64;
constexpr std::int32_t min_list_recurrent = 4;
constexpr std::int32_t min_spacing = 64;

bool keeps_running_state(const ContextFacts& facts) { return facts.is_recurrent || facts.is_hybrid; }

}  // namespace

bool uses_checkpoints(const ContextFacts& facts, std::int32_t n_ctx_checkpoints) {
    const bool is_hard_to_cut = facts.removal == Removal::full || facts.removal == Removal::recurrent ||
                                facts.n_swa > 0 || keeps_running_state(facts);
    return n_ctx_checkpoints > 0 && is_hard_to_cut;
}

bool is_cut(std::int32_t remaining, const ContextFacts& facts) {
    return remaining == std::min(facts.n_batch, n_tail + facts.n_ubatch) ||
           remaining == std::min(facts.n_batch, n_tail);
}

bool wants_checkpoint(const CheckpointInputs& inputs, const PromptRecord& record) {
    const std::int32_t least = keeps_running_state(inputs.facts) ? min_list_recurrent : min_list;
    if (inputs.pos_min < 0 || inputs.n_list < least) {
        return false;
    }
    const std::int32_t n_before = inputs.n_list - inputs.n_rows;
    const std::int32_t n_newest = record.checkpoints.empty() ? 0 : record.checkpoints.back().n_tokens;
    if (!record.checkpoints.empty() && n_before <= n_newest + min_spacing) {
        return false;
    }
    // A complete list is near the end, too.
    const bool is_near_end = inputs.n_prompt < inputs.n_list + inputs.facts.n_ubatch;
    return is_near_end || (inputs.min_step >= 0 && n_before - n_newest >= inputs.min_step);
}

CheckpointCounts add_checkpoint(Context& context, SequenceId sequence, PromptRecord& record,
                                std::int32_t limit) {
    CheckpointCounts counts;
    try {
        Checkpoint checkpoint{.pos_min = context.position_min(sequence),
                              .pos_max = context.position_max(sequence),
                              .n_tokens = static_cast<std::int32_t>(record.tokens.size()),
                              .state = context.read_state(sequence, true)};
        if (checkpoint.state.empty()) {
            return counts;
        }
        record.checkpoints.push_back(std::move(checkpoint));
        counts.created = 1;
    } catch (const std::bad_alloc&) {
        return counts;
    }
    while (record.checkpoints.size() > static_cast<std::size_t>(std::max(1, limit))) {
        record.checkpoints.pop_front();
        ++counts.evicted;
    }
    return counts;
}

}  // namespace paddock
