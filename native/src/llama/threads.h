// How many threads compute when nobody said so.
#pragma once

#include <cstdint>

namespace paddock {

/// Physical cores that this process may run on, at least 1. Hyper-threads of one core share its arithmetic
/// units, so that more threads than cores make decoding slower.
std::int32_t physical_cores();

}  // namespace paddock
