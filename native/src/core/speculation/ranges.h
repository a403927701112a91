// Limits of 11 §18 that hold for the command line and for requests.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace paddock {

/// Tokens that a model may draft ahead, and positions that the controllers know.
inline constexpr std::int32_t max_depth = 64;
inline constexpr auto controllers = std::to_array<std::string_view>({"profit", "fringe"});

}  // namespace paddock
