#include "core/rates.h"

namespace paddock {

namespace {

constexpr Micros us_per_second = 1'000'000;
constexpr std::int64_t window_seconds = 60;

}  // namespace

void SlidingRate::add(std::int64_t n_tokens, Micros spent_us, Micros now) {
    const std::int64_t number = now / us_per_second;
    forget_before(number - window_seconds + 1);
    if (seconds_.empty() || seconds_.back().number != number) {
        seconds_.push_back({.number = number});
    }
    seconds_.back().n_tokens += n_tokens;
    seconds_.back().spent_us += spent_us;
    n_tokens_ += n_tokens;
    spent_us_ += spent_us;
}

double SlidingRate::per_second(Micros now) {
    forget_before(now / us_per_second - window_seconds + 1);
    if (spent_us_ <= 0) {
        return 0.0;
    }
    return static_cast<double>(n_tokens_) * us_per_second / static_cast<double>(spent_us_);
}

void SlidingRate::forget_before(std::int64_t number) {
    while (!seconds_.empty() && seconds_.front().number < number) {
        n_tokens_ -= seconds_.front().n_tokens;
        spent_us_ -= seconds_.front().spent_us;
        seconds_.pop_front();
    }
}

}  // namespace paddock
