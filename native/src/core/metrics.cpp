#include "core/metrics.h"

#include <cstddef>

namespace paddock {

void Metrics::on_prompt(std::int32_t n_processed, std::int32_t n_cached, Micros prompt_us, Micros now) {
    totals.prompt_tokens += n_processed;
    totals.prompt_tokens_cached += n_cached;
    totals.prompt_us += prompt_us;
    prompt_rate.add(n_processed, prompt_us, now);
}

void Metrics::on_finished(std::int32_t n_decoded, Micros generation_us, Micros now) {
    totals.predicted_tokens += n_decoded;
    totals.predicted_us += generation_us;
    predicted_rate.add(n_decoded, generation_us, now);
}

void Metrics::on_loop(LoopAction action, TextRegion region) {
    ++totals.speculation
          .loop_guard_actions[static_cast<std::size_t>(action)][static_cast<std::size_t>(region)];
}

void Metrics::on_decode(std::int32_t code, std::int64_t n_busy) {
    if (code != 0) {
        ++totals.decode_failures[code];
        return;
    }
    ++totals.n_decode;
    totals.busy_slots += n_busy;
}

Totals Metrics::read(Micros now) {
    Totals read = totals;
    read.prompt_rate = prompt_rate.per_second(now);
    read.predicted_rate = predicted_rate.per_second(now);
    return read;
}

}  // namespace paddock
