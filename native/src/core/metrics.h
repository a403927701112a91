// Counts since the start; they outlive sleep (10 §24.1-24.3).
#pragma once

#include "core/rates.h"
#include "core/snapshot.h"
#include "core/speculation/loop_guard.h"

namespace paddock {

/// Totals, and what the rates of the last minute are made of. Used by the decode thread.
struct Metrics {
    Totals totals;
    SlidingRate prompt_rate;
    SlidingRate predicted_rate;

    void on_prompt(std::int32_t n_processed, std::int32_t n_cached, Micros prompt_us, Micros now);
    void on_finished(std::int32_t n_decoded, Micros generation_us, Micros now);
    void on_loop(LoopAction action, TextRegion region);
    void on_decode(std::int32_t code, std::int64_t n_busy);
    /// With the rates as of `now`.
    Totals read(Micros now);
};

}  // namespace paddock
