#include "core/speculation/depth_state.h"

#include <algorithm>
#include <cmath>

namespace paddock {
namespace {

/// Whoever guesses right so many times in a row is tried with twice the depth.
constexpr std::int32_t sure_streak = 3;

/// Times that the wait for a probe doubles.
constexpr std::int32_t most_doublings = 2;
/// Longer than any request lasts; keeps the doubled number in range.
constexpr std::int32_t longest_wait = 16'777'216;
/// Of the turns to explore, each fourth goes to the base.
constexpr std::int32_t base_turn = 4;

std::int32_t rung(std::int32_t base, double fraction) {
    return static_cast<std::int32_t>(std::ceil(static_cast<double>(base) * fraction));
}

}  // namespace

bool is_comparable(const DepthSetting& a, const DepthSetting& b) {
    return a.base == b.base && a.n_min == b.n_min && a.p_min == b.p_min && a.temperature == b.temperature &&
           a.mode == b.mode;
}

void DepthCounters::set_depth(std::int32_t depth) {
    if (depth != n_max) {
        probe = n_max < 0 ? probe : 0;
        streak = 0;
        n_max = depth;
    }
}

void DepthCounters::on_trial(std::int32_t n_drafted, std::int32_t n_accepted) {
    reach =
        n_accepted < n_drafted ? 1 : std::max(reach, std::min(2 * n_drafted, AcceptanceTable::n_positions));
}

void DepthState::clear_data() {
    // A new text is tried at once, where the time that trials may take allows it.
    counters = {.probe = longest_wait};
    fringe.clear();
    table.clear();
    change = {};
}

std::int32_t probe_depth(const DepthSetting& setting, double fraction) {
    const std::int32_t least = std::min(std::max(1, setting.n_min), setting.base);
    return std::clamp(rung(setting.base, fraction), least, setting.base);
}

std::int32_t probe_cap(const DepthCounters& counters, const DepthSetting& setting,
                       const DepthParams& params) {
    return std::min(probe_depth(setting, params.probe_fraction), std::max(counters.reach, setting.n_min));
}

std::int32_t next_rung(std::int32_t base, std::int32_t depth, double fraction) {
    return std::min(base, depth + std::max(1, rung(base, fraction)));
}

std::int32_t probe_wait(const DepthCounters& counters, std::int32_t interval) {
    const auto doublings = static_cast<std::uint32_t>(std::min(counters.failed_probes, most_doublings));
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(std::min(interval, longest_wait))
                                     << doublings);
}

std::int32_t profit_cap(DepthCounters& counters, const DepthSetting& setting, const DepthParams& params,
                        const CycleLeave& leave) {
    if (counters.n_max < 0) {
        counters.set_depth(0);
        const std::int64_t wanted = params.warmup > 0 ? params.warmup : params.min_samples;
        counters.warm_up = static_cast<std::int32_t>(std::max<std::int64_t>(0, wanted - leave.n_known));
        return 0;
    }
    if (!leave.is_baseline_known || leave.is_baseline_probe) {
        return 0;
    }
    if (counters.warm_up > 0) {
        counters.warm_up -= leave.spends_warm_up ? 1 : 0;
        return std::min(setting.base, std::max(counters.reach, setting.n_min));
    }
    if (counters.n_max == 0) {
        if (leave.may_probe) {
            counters.probe = 0;
            return probe_cap(counters, setting, params);
        }
        counters.probe = std::min(counters.probe + 1, probe_wait(counters, params.probe_interval));
        return 0;
    }
    if (counters.streak >= sure_streak && counters.n_max < setting.base) {
        return std::min(setting.base, 2 * counters.n_max);
    }
    ++counters.explore;
    if (counters.explore % params.explore_interval != 0) {
        return counters.n_max;
    }
    if (counters.explore % (std::int64_t{base_turn} * params.explore_interval) == 0) {
        return setting.base;
    }
    return next_rung(setting.base, counters.n_max, params.probe_fraction);
}

std::int32_t fringe_cap(DepthCounters& counters, const DepthSetting& setting, const DepthParams& params) {
    const std::int32_t probe = probe_depth(setting, params.probe_fraction);
    if (counters.n_max < 0) {
        counters.set_depth(probe);
        return probe;
    }
    if (counters.n_max == 0) {
        if (counters.probe + 1 < params.probe_interval) {
            ++counters.probe;
            return 0;
        }
        counters.set_depth(probe);
        return probe;
    }
    if (counters.n_max < setting.base) {
        counters.explore = (counters.explore + 1) % params.explore_interval;
        return counters.explore == 0 ? setting.base : counters.n_max;
    }
    return counters.n_max;
}

}  // namespace paddock
