// Whether the slots of a group change their depths (11 §17.8). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/speculation/depth_plan.h"
#include "core/speculation/speculation_params.h"

namespace paddock {

struct DepthDecision {
    /// Tokens a second of the best plan, and what it gains over no drafts as a share.
    double score = 0.0;
    double gain = 0.0;
    /// The depths to use from now on, in the order of the slots; nothing when they stay as they are.
    std::optional<std::vector<std::int32_t>> depths;
};

/// `current`: present depths. `off_dwell`: decisions in a row that wanted all slots off; counted here.
DepthDecision decide_depths(std::span<const PlanSlot> slots, std::span<const std::int32_t> current,
                            const PlanCosts& costs, const DepthParams& params, std::int32_t& off_dwell);

/// Gain of the best plan over no drafts; 0 when that is not known.
double gain_of(const DepthPlan& plan, std::span<const PlanSlot> slots, const PlanCosts& costs);

}  // namespace paddock
