// How deep each slot of a cycle had best draft, by what the whole cycle then gives and costs (11 §17.7).
// Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/speculation/cost_model.h"

namespace paddock {

struct PlanSlot {
    /// Chances that all of the first k + 1 draft tokens are accepted; as many as the slot may draft.
    std::span<const double> gains;
    /// Shorter drafts are not made.
    std::int32_t n_min = 0;
    /// Chance that there is something to draft at all.
    double found = 1.0;
};

struct PlanCosts {
    /// Milliseconds of the cycle when these slots draft 0, 1, 2, ... tokens together; ends where unknown.
    std::span<const double> cycle_ms;
    /// Up to so many tokens together the costs were measured; beyond, they are guessed.
    std::int32_t n_measured = std::numeric_limits<std::int32_t>::max();
    DraftCost draft;
    /// Tokens that the slots outside of the plan give, the drafting ones of them, and their longest draft.
    double fixed_tokens = 0.0;
    std::int32_t fixed_drafting = 0;
    std::int32_t fixed_deepest = 0;
};

struct DepthPlan {
    /// In the order of the slots.
    std::vector<std::int32_t> depths;
    /// Tokens a second; 0 when not known.
    double score = 0.0;
};

/// What the cycle gives and takes in the mean.
struct CycleYield {
    double tokens = 0.0;
    double ms = 0.0;
};

/// With these depths; nothing when the costs don't reach that far.
std::optional<CycleYield> yield_of(std::span<const PlanSlot> slots, std::span<const std::int32_t> depths,
                                   const PlanCosts& costs);

/// Tokens a second with these depths; 0 when the costs don't reach that far.
double score_of(std::span<const PlanSlot> slots, std::span<const std::int32_t> depths,
                const PlanCosts& costs);

/// The depths with the highest score, fewer rows first.
DepthPlan best_plan(std::span<const PlanSlot> slots, const PlanCosts& costs);

}  // namespace paddock
