// The fringe controller: depth by the acceptance of the deepest positions in use (11 §16).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/speculation/speculation_params.h"

namespace paddock {

class Fringe {
  public:
    static constexpr std::int32_t window = 64;
    static constexpr std::int32_t n_positions = 64;

    /// Outcome of one flat draft: right tokens, and positions that it says something about (11 §14.2).
    void add(std::int32_t n_accepted, std::int32_t n_covered);
    /// Share of accepted tokens at the deepest positions of `depth` (of `base` when that is 0); negative
    /// while fewer than `min_reach` were reached.
    double rate(std::int32_t depth, std::int32_t base, const DepthParams& params) const;
    /// The depth to use from now on.
    std::int32_t decide(std::int32_t depth, std::int32_t base, const DepthParams& params);
    void clear() { *this = Fringe(); }

  private:
    struct Outcome {
        std::int32_t accepted = 0;
        std::int32_t covered = 0;
        std::int64_t epoch = -1;
    };
    struct Reach {
        std::int64_t reached = 0;
        std::int64_t accepted = 0;
    };

    bool may_raise(std::int32_t target, std::int32_t base, const DepthParams& params) const;

    std::array<Outcome, static_cast<std::size_t>(window)> ring_{};
    std::size_t next_ = 0;
    std::array<Reach, static_cast<std::size_t>(n_positions)> positions_{};
    std::int64_t epoch_ = 0;
    std::int32_t off_dwell_ = 0;
};

}  // namespace paddock
