#include "core/timings.h"

namespace paddock {

namespace {

constexpr double ms_per_second = 1000.0;

double ratio(double above, double below) { return below > 0.0 ? above / below : 0.0; }

}  // namespace

Timings make_timings(std::int32_t cache_n, std::int32_t prompt_n, Micros prompt_us, std::int32_t predicted_n,
                     Micros predicted_us) {
    Timings timings;
    timings.cache_n = cache_n;
    timings.prompt_n = prompt_n;
    timings.prompt_ms = to_ms(prompt_us);
    timings.prompt_per_token_ms = ratio(timings.prompt_ms, prompt_n);
    timings.prompt_per_second = ratio(ms_per_second * prompt_n, timings.prompt_ms);
    timings.predicted_n = predicted_n;
    timings.predicted_ms = to_ms(predicted_us);
    timings.predicted_per_token_ms = ratio(timings.predicted_ms, predicted_n);
    timings.predicted_per_second = ratio(ms_per_second * predicted_n, timings.predicted_ms);
    return timings;
}

}  // namespace paddock
