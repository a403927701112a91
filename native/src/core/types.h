// Plain types that everything shares.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace paddock {

using Token = std::int32_t;
using Position = std::int32_t;
/// Sequence of the context's memory; slot `s` owns sequence `s` (10 §2.1).
using SequenceId = std::int32_t;
using TaskId = std::int64_t;
/// Monotonic microseconds, or a duration in microseconds.
using Micros = std::int64_t;

/// Stands in a token list for a position that holds media (10 §2.3).
inline constexpr Token media_placeholder = -1;
/// "To the end" in ranges of positions.
inline constexpr Position end_position = -1;

inline constexpr Micros us_per_ms = 1000;
/// Milliseconds as results report them.
inline double to_ms(Micros us) { return static_cast<double>(us) / us_per_ms; }

inline Micros now_us() {
    using namespace std::chrono;
    return duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace paddock
