#include "core/partials.h"

#include <utility>

#include "core/slot_view.h"

namespace paddock {

namespace {

Result result_of(const Slot& slot, ResultKind kind) {
    const SlotRequest& request = *slot.request;
    Result result;
    result.id = request.task.id;
    result.kind = kind;
    result.index = request.task.index;
    result.id_slot = slot.id;
    result.n_decoded = request.output.has_value() ? request.output->n_decoded() : 0;
    result.n_prompt_tokens = static_cast<std::int32_t>(request.task.tokens.size());
    result.n_prompt_cached = slot.n_prompt_cached;
    return result;
}

}  // namespace

void send_progress(DecodeState& state, const Slot& slot) {
    const SlotRequest& request = *slot.request;
    if (!request.params->stream || !request.params->return_progress) {
        return;
    }
    const Micros now = now_us();
    Result result = result_of(slot, ResultKind::partial);
    result.is_progress = true;
    result.progress = {.total = result.n_prompt_tokens,
                       .cache = slot.n_prompt_cached,
                       .processed = slot.n_tokens(),
                       .time_ms = (now - request.prompt_start) / us_per_ms};
    if (request.params->timings_per_token) {
        result.has_timings = true;
        result.timings = timings_of(slot, now);
    }
    state.results.push(std::move(result));
}

void send_partial(DecodeState& state, const Slot& slot, Emission emission) {
    const SlotRequest& request = *slot.request;
    if (!request.params->stream || !emission.has_content) {
        return;
    }
    Result result = result_of(slot, ResultKind::partial);
    result.text = std::move(emission.text);
    result.tokens = std::move(emission.tokens);
    result.records = std::move(emission.records);
    if (request.params->timings_per_token) {
        result.has_timings = true;
        result.timings = timings_of(slot, now_us());
    }
    state.results.push(std::move(result));
}

void send_final(DecodeState& state, Slot& slot) {
    SlotRequest& request = *slot.request;
    Result result = result_of(slot, ResultKind::final);
    result.stop = StopKind::limit;
    if (request.output.has_value()) {
        TextOutput& output = *request.output;
        Emission last = output.final_emission();
        result.text = std::move(last.text);
        result.tokens = std::move(last.tokens);
        result.records = std::move(last.records);
        result.stop = output.stop() == StopKind::none ? StopKind::limit : output.stop();
        result.stop_detail = output.stop_detail();
        result.stopping_word = output.stopping_word();
        result.truncated = output.truncated() || request.was_shifted;
        result.has_new_line = output.has_new_line();
    }
    result.n_tokens_cached = slot.n_tokens();
    result.speculation = request.speculation;
    result.loop_guard = request.loop_guard.report();
    result.n_reasoning_tokens = result.loop_guard.reasoning_tokens;
    result.has_timings = true;
    result.timings = timings_of(slot, now_us());
    state.results.push(std::move(result));
}

}  // namespace paddock
