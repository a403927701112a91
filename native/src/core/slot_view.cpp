#include "core/slot_view.h"

#include <algorithm>

#include "core/timings.h"

namespace paddock {

namespace {

void describe_request(SlotView& view, const Slot& slot, bool with_texts, Micros now) {
    const SlotRequest& request = *slot.request;
    view.was_used = true;
    view.id_task = request.task.id;
    view.n_prompt_tokens = static_cast<std::int32_t>(request.task.tokens.size());
    view.n_prompt_processed = slot.n_prompt_processed;
    view.n_prompt_cached = slot.n_prompt_cached;
    view.params = request.params;
    view.timings = timings_of(slot, now);
    if (request.output.has_value()) {
        const TextOutput& output = *request.output;
        view.n_decoded = output.n_decoded();
        view.has_new_line = output.has_new_line();
        view.has_next_token = !output.ended();
        view.n_remaining = request.limit < 0 ? -1 : std::max(0, request.limit - view.n_decoded);
    }
    view.speculation = request.speculation;
    view.loop_guard = request.loop_guard.report();
    if (with_texts) {
        view.prompt_tokens = request.task.tokens;
        view.generated = request.output.has_value() ? request.output->text() : "";
    }
}

}  // namespace

SlotView view_of(const Slot& slot, std::int32_t n_ctx_slot, bool with_texts, Micros now) {
    SlotView view = slot.request == nullptr ? slot.last_view : SlotView{};
    view.id = slot.id;
    view.n_ctx = n_ctx_slot;
    view.state = slot.state;
    view.idle_ms = slot.last_used < 0 ? -1 : (now - slot.last_used) / us_per_ms;
    view.n_cached_tokens = slot.n_tokens();
    view.n_checkpoints = static_cast<std::int32_t>(slot.record.checkpoints.size());
    if (slot.request != nullptr) {
        describe_request(view, slot, with_texts, now);
    }
    return view;
}

Timings timings_of(const Slot& slot, Micros now) {
    const SlotRequest& request = *slot.request;
    const TextOutput* output = request.output.has_value() ? &*request.output : nullptr;
    const bool generates = request.generation_start > 0 && output != nullptr;
    const Micros prompt_us = request.prompt_us > 0      ? request.prompt_us
                             : request.prompt_start > 0 ? now - request.prompt_start
                                                        : 0;
    return make_timings(slot.n_prompt_cached, slot.n_prompt_processed, prompt_us,
                        generates ? output->n_decoded() : 0,
                        generates ? std::max<Micros>(1, now - request.generation_start) : 0);
}

}  // namespace paddock
