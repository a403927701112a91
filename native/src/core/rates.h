// Throughput over the last minute (10 §24.3).
#pragma once

#include <cstdint>
#include <deque>

#include "core/types.h"

namespace paddock {

/// Tokens a second of the time that was spent on them, over a sliding window of 60 s. Amounts are gathered by
/// the second, so that it never holds more than 60 of them.
class SlidingRate {
  public:
    /// `now` never goes back.
    void add(std::int64_t n_tokens, Micros spent_us, Micros now);
    /// 0 when nothing was added in the window.
    double per_second(Micros now);

  private:
    struct Second {
        std::int64_t number = 0;
        std::int64_t n_tokens = 0;
        Micros spent_us = 0;
    };

    void forget_before(std::int64_t number);

    std::deque<Second> seconds_;
    std::int64_t n_tokens_ = 0;
    Micros spent_us_ = 0;
};

}  // namespace paddock
