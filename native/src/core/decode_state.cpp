#include "core/decode_state.h"

#include <algorithm>
#include <utility>

#include "core/slot_view.h"
#include "core/speculation/draft_log.h"

namespace paddock {

DecodeState::DecodeState(const EngineParams& engine_params, Loaded& loaded_model, ResultQueue& result_queue,
                         PromptCache& prompt_cache, Metrics& engine_metrics, LogLine log_line)
    : params(engine_params),
      model(loaded_model),
      results(result_queue),
      cache(prompt_cache),
      metrics(engine_metrics),
      log(std::move(log_line)),
      slots(static_cast<std::size_t>(loaded_model.n_slots)),
      loras(loaded_model.loras) {
    for (SequenceId id = 0; auto& slot : slots) {
        slot.id = id++;
        for (const LoraView& lora : loras) {
            slot.adapters.push_back({lora.id, lora.scale});
        }
    }
}

std::int64_t DecodeState::busy_slots() const {
    return std::ranges::count_if(slots, [](const Slot& slot) { return !slot.is_idle(); });
}

void DecodeState::clear(Slot& slot) {
    context().remove(slot.id, 0, end_position);
    slot.record.tokens.clear();
    slot.record.checkpoints.clear();
}

void DecodeState::release(Slot& slot) {
    if (slot.is_idle()) {
        return;
    }
    const Micros now = now_us();
    const SlotRequest& request = *slot.request;
    if (request.generation_start > 0 && request.output.has_value()) {
        metrics.on_finished(request.output->n_decoded(), std::max<Micros>(1, now - request.generation_start),
                            now);
    }
    if (request.speculation.drafts > 0) {
        log(log_info, "slot " + std::to_string(slot.id) + ": " + request_line(request.speculation));
    }
    log(log_info, "slot " + std::to_string(slot.id) + ": task " + std::to_string(request.task.id) +
                      " released, " + std::to_string(slot.n_tokens()) + " tokens in memory");
    const bool is_child = request.task.parent >= 0;
    slot.state = SlotState::idle;
    slot.last_used = now;
    slot.last_view = view_of(slot, facts().n_ctx_slot, params.slots_debug, now);
    slot.request.reset();
    slot.rows_in_batch = 0;
    slot.window_row = no_row;
    slot.waited = 0;
    // The parent's copy of the prompt is enough.
    if (is_child) {
        clear(slot);
    }
}

std::vector<Slot*> DecodeState::waiting_children(const Slot& parent) {
    std::vector<Slot*> children;
    for (Slot& slot : slots) {
        if (slot.state == SlotState::wait_other && slot.request->task.parent == parent.request->task.id) {
            children.push_back(&slot);
        }
    }
    return children;
}

void DecodeState::fail(Slot& slot, ErrorKind kind, const std::string& message) {
    const std::vector<Slot*> children = waiting_children(slot);
    send_error(slot.request->task, kind, message);
    release(slot);
    for (Slot* child : children) {
        send_error(child->request->task, kind, message);
        release(*child);
    }
}

void DecodeState::send_error(const Task& task, ErrorKind kind, const std::string& message) {
    log(log_error, "task " + std::to_string(task.id) + ": " + message);
    Result result;
    result.id = task.id;
    result.index = task.index;
    result.kind = ResultKind::error;
    result.error = kind;
    result.text = message;
    result.n_prompt_tokens = static_cast<std::int32_t>(task.tokens.size());
    result.n_ctx = facts().n_ctx_slot;
    results.push(std::move(result));
}

}  // namespace paddock
