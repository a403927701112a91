#include "core/prompt_fill.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/checkpoints.h"
#include "core/dispatch.h"
#include "core/partials.h"
#include "core/prompt_reuse.h"

namespace paddock {

namespace {

constexpr std::int32_t pooling_last = 3;

std::int32_t prompt_size(const Slot& slot) {
    return static_cast<std::int32_t>(slot.request->task.tokens.size());
}

/// Whether a prompt may be evaluated in several visits (10 §13.3).
bool is_splittable(const DecodeState& state, const Slot& slot) {
    const ContextFacts& facts = state.facts();
    return slot.samples() || (facts.has_memory && facts.pooling == pooling_last);
}

struct Problem {
    ErrorKind kind = ErrorKind::server;
    std::string message;
};

/// 10 §8.2.
std::optional<Problem> size_problem(const DecodeState& state, const Slot& slot) {
    const ContextFacts& facts = state.facts();
    const std::int32_t n_prompt = prompt_size(slot);
    const std::string found = "The prompt has " + std::to_string(n_prompt) + " tokens";
    if (slot.samples() && !facts.has_memory) {
        return Problem{ErrorKind::server,
                       "This model has no memory and can't generate; it serves embeddings only"};
    }
    const std::string context_full = found + ", and the context of a slot holds " +
                                     std::to_string(facts.n_ctx_slot) + "; shorten it, or raise --ctx-size";
    if (is_splittable(state, slot)) {
        return n_prompt >= facts.n_ctx_slot
                   ? std::optional(Problem{ErrorKind::exceed_context_size, context_full})
                   : std::nullopt;
    }
    if (n_prompt > facts.n_ubatch) {
        return Problem{ErrorKind::server,
                       found + ", which have to be processed at once, and the physical batch size is " +
                           std::to_string(facts.n_ubatch) + "; raise --ubatch-size"};
    }
    if (n_prompt > facts.n_ctx_slot) {
        return Problem{ErrorKind::exceed_context_size, context_full};
    }
    return std::nullopt;
}

/// Tokens of the prompt that need no evaluation; memory and list are cut down to them (10 §8.3-8.8).
std::int32_t reuse(DecodeState& state, Slot& slot) {
    const SlotRequest& request = *slot.request;
    const auto& prompt = request.task.tokens;
    const GenerationParams& params = *request.params;
    if (!params.cache_prompt || !is_splittable(state, slot) || !slot.samples()) {
        slot.record.checkpoints.clear();
        return 0;
    }
    std::int32_t n_past = common_prefix(slot.record.tokens, prompt);
    if (request.alora_start > 0) {
        n_past = std::min(n_past, request.alora_start - 1);
    }
    if (params.n_cache_reuse > 0) {
        if (request.alora_start > 0) {
            state.log(log_debug,
                      "slot " + std::to_string(slot.id) + ": no chunks behind the start of an adapter");
        } else if (state.facts().can_shift) {
            n_past =
                reuse_chunks(state.context(), slot.id, slot.record, prompt, n_past, params.n_cache_reuse);
        } else {
            state.log(log_warning,
                      "slot " + std::to_string(slot.id) +
                          ": this memory can't shift, so that chunks of a prompt are not reused");
        }
    }
    const HistoryOutcome outcome = check_history(state.context(), slot.id, slot.record, n_past,
                                                 static_cast<std::int32_t>(prompt.size()));
    if (!outcome.warning.empty()) {
        state.log(log_warning, "slot " + std::to_string(slot.id) + ": " + outcome.warning);
    }
    state.metrics.totals.checkpoints_restored += outcome.restored_checkpoint ? 1 : 0;
    return outcome.n_past;
}

/// First visit of a prompt; false when the slot was released.
bool begin(DecodeState& state, Slot& slot) {
    slot.request->prompt_start = now_us();
    slot.state = SlotState::processing_prompt;
    if (slot.request->task.tokens.empty()) {
        for (Slot* child : state.waiting_children(slot)) {
            send_final(state, *child);
            state.release(*child);
        }
        send_final(state, slot);
        state.release(slot);
        return false;
    }
    if (const auto problem = size_problem(state, slot)) {
        state.fail(slot, problem->kind, problem->message);
        return false;
    }
    slot.n_prompt_cached = reuse(state, slot);
    slot.n_prompt_processed = 0;
    slot.record.tokens.resize(static_cast<std::size_t>(slot.n_prompt_cached));
    send_progress(state, slot);
    return true;
}

/// Memory behind the list goes; where it can't, everything does (10 §8.9).
void trim(DecodeState& state, Slot& slot) {
    if (!state.facts().has_memory || state.context().remove(slot.id, slot.n_tokens(), end_position)) {
        return;
    }
    state.clear(slot);
    slot.n_prompt_cached = 0;
}

/// Tokens that a slot still has to get into memory: of its prompt, or of a refill.
const std::vector<Token>& wanted_tokens(const Slot& slot) {
    return slot.state == SlotState::refill ? slot.request->refill : slot.request->task.tokens;
}

void keep_checkpoint(DecodeState& state, Slot& slot) {
    const std::int32_t n_list = slot.n_tokens() + slot.rows_in_batch;
    const CheckpointInputs inputs{.facts = state.facts(),
                                  .n_list = n_list,
                                  .n_rows = slot.rows_in_batch,
                                  .n_prompt = prompt_size(slot),
                                  .min_step = state.params.checkpoint_min_step,
                                  .pos_min = state.context().position_min(slot.id)};
    if (slot.request->task.kind != TaskKind::completion || !wants_checkpoint(inputs, slot.record)) {
        return;
    }
    const CheckpointCounts counts =
        add_checkpoint(state.context(), slot.id, slot.record, state.params.n_ctx_checkpoints);
    state.metrics.totals.checkpoints_created += counts.created;
    state.metrics.totals.checkpoints_evicted += counts.evicted;
}

}  // namespace

void fill_prompt(DecodeState& state, Slot& slot, Batch& batch) {
    if (slot.state == SlotState::started && !begin(state, slot)) {
        return;
    }
    const ContextFacts& facts = state.facts();
    const auto room = static_cast<std::size_t>(facts.n_batch);
    const auto& tokens = wanted_tokens(slot);
    const auto n_wanted = static_cast<std::int32_t>(tokens.size());
    const bool fits = batch.size() + tokens.size() <= room;
    if (batch.size() >= room || (!is_splittable(state, slot) && !fits)) {
        return;
    }
    trim(state, slot);
    const bool cuts = slot.state == SlotState::processing_prompt && slot.samples() &&
                      uses_checkpoints(facts, state.params.n_ctx_checkpoints);
    const std::int32_t alora_start = slot.request->alora_start;
    const std::int32_t first = slot.n_tokens();
    for (std::int32_t next = first; next < n_wanted && batch.size() < room; ++next) {
        // Rows before the start of an activated adapter run without it, in visits of their own (10 §19.6).
        if (alora_start > 0 && next == alora_start - 1 && next > first) {
            break;
        }
        OwnedRow& added = batch.add(slot, tokens[static_cast<std::size_t>(next)]);
        added.row.output = slot.embeds();
        if (cuts && is_cut(n_wanted - next - 1, facts)) {
            break;
        }
    }
    const bool is_complete = slot.n_tokens() + slot.rows_in_batch == n_wanted;
    if (slot.state == SlotState::processing_prompt) {
        if (cuts && slot.rows_in_batch > 0) {
            keep_checkpoint(state, slot);
        }
        if (is_complete) {
            OwnedRow& last = batch[batch.size() - 1];
            last.row.output = true;
            last.is_slot_output = true;
            complete_prompt(state, slot);
        }
    }
}

void complete_prompt(DecodeState& state, Slot& slot) {
    slot.state = SlotState::done_prompt;
    if (slot.request->sampler == nullptr) {
        return;
    }
    slot.request->sampler->reset();
    for (const Token token : slot.request->task.tokens) {
        slot.request->sampler->accept(token, false);
    }
    state.log(log_debug, "slot " + std::to_string(slot.id) + ": prompt complete");
}

}  // namespace paddock
