// Times of a request in the units that clients read (10 §5.5).
#pragma once

#include <cstdint>

#include "core/result.h"
#include "core/types.h"

namespace paddock {

/// `cache_n`: tokens of the prompt that were not evaluated, `prompt_n`: those that were. A ratio with nothing
/// below the line is 0.
Timings make_timings(std::int32_t cache_n, std::int32_t prompt_n, Micros prompt_us, std::int32_t predicted_n,
                     Micros predicted_us);

}  // namespace paddock
