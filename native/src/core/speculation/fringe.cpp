#include "core/speculation/fringe.h"

#include <algorithm>
#include <cmath>

namespace paddock {
namespace {

/// Most that the depth moves at a time.
constexpr std::int32_t slew = 2;

/// Depth that the rate calls for (11 §16.4).
std::int32_t target_depth(double rate, std::int32_t base, const DepthParams& params) {
    if (rate < params.fringe_min) {
        return 0;
    }
    if (rate >= params.fringe_max) {
        return base;
    }
    const double x = (rate - params.fringe_min) / (params.fringe_max - params.fringe_min);
    return std::min(base, std::max(2, static_cast<std::int32_t>(std::floor(base * x + 0.5))));
}

}  // namespace

void Fringe::add(std::int32_t n_accepted, std::int32_t n_covered) {
    ring_[next_] = {n_accepted, n_covered, epoch_};
    next_ = (next_ + 1) % ring_.size();
    for (std::int32_t i = 0; i < std::min(n_covered, n_positions); ++i) {
        Reach& reach = positions_[static_cast<std::size_t>(i)];
        reach.reached += 1;
        reach.accepted += i < n_accepted ? 1 : 0;
    }
}

double Fringe::rate(std::int32_t depth, std::int32_t base, const DepthParams& params) const {
    const std::int32_t end = depth > 0 ? depth : base;
    const std::int32_t begin = std::max(0, end - params.fringe_window);
    std::int64_t reached = 0;
    std::int64_t accepted = 0;
    for (const Outcome& outcome : ring_) {
        if (outcome.epoch == epoch_) {
            reached += std::max(0, std::min(end, outcome.covered) - begin);
            accepted += std::max(0, std::min({end, outcome.covered, outcome.accepted}) - begin);
        }
    }
    const bool is_known = reached > 0 && reached >= params.min_reach;
    return is_known ? static_cast<double>(accepted) / static_cast<double>(reached) : -1.0;
}

bool Fringe::may_raise(std::int32_t target, std::int32_t base, const DepthParams& params) const {
    Reach sum;
    const std::int32_t end = std::min(target, n_positions);
    for (std::int32_t i = std::max(0, target - params.fringe_window); i < end; ++i) {
        sum.reached += positions_[static_cast<std::size_t>(i)].reached;
        sum.accepted += positions_[static_cast<std::size_t>(i)].accepted;
    }
    const double share = static_cast<double>(target) / base;
    const double needed =
        std::min(params.fringe_max, params.fringe_min + (params.fringe_max - params.fringe_min) * share);
    return sum.reached >= params.min_reach &&
           static_cast<double>(sum.accepted) >= needed * static_cast<double>(sum.reached);
}

std::int32_t Fringe::decide(std::int32_t depth, std::int32_t base, const DepthParams& params) {
    const double now = rate(depth, base, params);
    if (now < 0.0 || base <= 0) {
        return depth;
    }
    std::int32_t target = target_depth(now, base, params);
    if (target == 0 && depth > 0) {
        if (++off_dwell_ < params.off_dwell) {
            return depth;
        }
    }
    off_dwell_ = 0;
    if (target > 0 && depth > 0) {
        target = std::clamp(target, depth - slew, depth + slew);
        if (target > depth && !may_raise(target, base, params)) {
            return depth;
        }
    }
    if (target < depth) {
        ++epoch_;
        positions_ = {};
    }
    return target;
}

}  // namespace paddock
