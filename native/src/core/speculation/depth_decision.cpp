#include "core/speculation/depth_decision.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace paddock {
namespace {

/// What rests on costs that nobody measured must promise so much more.
constexpr double guess_margin = 0.25;

std::int32_t rows_of(std::span<const std::int32_t> depths) {
    return std::accumulate(depths.begin(), depths.end(), 0);
}

}  // namespace

double gain_of(const DepthPlan& plan, std::span<const PlanSlot> slots, const PlanCosts& costs) {
    const std::vector<std::int32_t> none(slots.size(), 0);
    const double undrafted = score_of(slots, none, costs);
    return undrafted > 0.0 ? plan.score / undrafted - 1.0 : 0.0;
}

DepthDecision decide_depths(std::span<const PlanSlot> slots, std::span<const std::int32_t> current,
                            const PlanCosts& costs, const DepthParams& params, std::int32_t& off_dwell) {
    DepthDecision decision;
    DepthPlan plan = best_plan(slots, costs);
    decision.score = plan.score;
    decision.gain = gain_of(plan, slots, costs);
    if (decision.gain < params.profit_min) {
        std::fill(plan.depths.begin(), plan.depths.end(), 0);
        plan.score = score_of(slots, plan.depths, costs);
    }
    const std::int32_t rows_now = rows_of(current);
    const std::int32_t rows_then = rows_of(plan.depths);
    if (rows_then == 0 && rows_now > 0) {
        if (++off_dwell >= params.off_dwell) {
            off_dwell = 0;
            decision.depths = std::move(plan.depths);
        }
        return decision;
    }
    off_dwell = 0;
    if (std::equal(current.begin(), current.end(), plan.depths.begin(), plan.depths.end())) {
        return decision;
    }
    double margin = rows_then > rows_now ? params.raise : params.lower;
    if (rows_now == 0) {
        margin = std::max(params.profit_min, params.raise);
    }
    if (rows_then > std::max(rows_now, costs.n_measured)) {
        margin = std::max(margin, guess_margin);
    }
    if (plan.score >= (1.0 + margin) * score_of(slots, current, costs)) {
        decision.depths = std::move(plan.depths);
    }
    return decision;
}

}  // namespace paddock
