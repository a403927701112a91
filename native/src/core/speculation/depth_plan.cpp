#include "core/speculation/depth_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace paddock {
namespace {

constexpr std::size_t many_steps = 512;

/// One more draft token of a slot; its first ones together when it drafts a number or none.
struct Step {
    double gain_per_row = 0.0;
    double gain = 0.0;
    double rows = 0.0;
    std::int32_t depth = 0;  // of the slot after it
    std::size_t slot = 0;
};

std::vector<Step> steps_of(std::span<const PlanSlot> slots) {
    std::vector<Step> steps;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        const auto& gains = slots[slot].gains;
        const std::int32_t first = std::max(1, slots[slot].n_min);
        const double found = slots[slot].found;
        double sum = 0.0;
        for (std::size_t k = 0; k < gains.size(); ++k) {
            const auto depth = static_cast<std::int32_t>(k) + 1;
            sum += gains[k];
            if (depth == first) {
                steps.push_back({sum / first, found * sum, found * first, depth, slot});
            } else if (depth > first) {
                steps.push_back({gains[k], found * gains[k], found, depth, slot});
            }
        }
    }
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
        if (a.gain_per_row != b.gain_per_row) {
            return a.gain_per_row > b.gain_per_row;
        }
        return a.depth != b.depth ? a.depth < b.depth : a.slot < b.slot;
    });
    return steps;
}

/// A start of the steps that keep within a depth, and what it gives.
struct Choice {
    std::int32_t deepest = 0;
    std::size_t n_steps = 0;
    double rows = 0.0;
    double tokens = 0.0;
    double ms = 1.0;
};

/// Sums of shares are taken for the whole number that they miss by less.
constexpr double rounding = 1e-6;

/// Milliseconds of so many rows, which as the mean over cycles need not be a whole number.
std::optional<double> ms_of(double rows, const PlanCosts& costs) {
    const auto below = static_cast<std::size_t>(rows + rounding);
    const double rest = rows - static_cast<double>(below);
    const std::size_t above = rest > rounding ? below + 1 : below;
    if (above >= costs.cycle_ms.size()) {
        return std::nullopt;
    }
    return std::lerp(costs.cycle_ms[below], costs.cycle_ms[above], std::max(0.0, rest));
}

bool is_better(const Choice& a, const Choice& b) {
    const double left = a.tokens * b.ms;
    const double right = b.tokens * a.ms;
    return left > right || (left == right && a.rows < b.rows);
}

/// The best start of `steps`, all of which keep within `deepest`.
void improve(Choice& best, std::span<const Step> steps, std::int32_t deepest, double tokens,
             const PlanSlot* slots, const PlanCosts& costs) {
    std::int32_t reached = costs.fixed_deepest;
    std::int32_t n_drafting = costs.fixed_drafting;
    double rows = 0.0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        rows += step.rows;
        const std::optional<double> rows_ms = ms_of(rows, costs);
        if (!rows_ms) {
            return;
        }
        tokens += step.gain;
        n_drafting += step.depth == std::max(1, slots[step.slot].n_min) ? 1 : 0;
        reached = std::max(reached, step.depth);
        const double ms = *rows_ms + costs.draft.of(n_drafting, reached);
        const Choice choice{deepest, i + 1, rows, tokens, ms};
        best = is_better(choice, best) ? choice : best;
    }
}

}  // namespace

std::optional<CycleYield> yield_of(std::span<const PlanSlot> slots, std::span<const std::int32_t> depths,
                                   const PlanCosts& costs) {
    double tokens = static_cast<double>(slots.size()) + costs.fixed_tokens;
    double rows = 0.0;
    std::int32_t n_drafting = costs.fixed_drafting;
    std::int32_t deepest = costs.fixed_deepest;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        const auto depth = std::min(static_cast<std::size_t>(depths[slot]), slots[slot].gains.size());
        for (std::size_t k = 0; k < depth; ++k) {
            tokens += slots[slot].found * slots[slot].gains[k];
        }
        rows += slots[slot].found * static_cast<double>(depth);
        n_drafting += depth > 0 ? 1 : 0;
        deepest = std::max(deepest, static_cast<std::int32_t>(depth));
    }
    const std::optional<double> rows_ms = ms_of(rows, costs);
    if (!rows_ms) {
        return std::nullopt;
    }
    return CycleYield{tokens, *rows_ms + costs.draft.of(n_drafting, deepest)};
}

double score_of(std::span<const PlanSlot> slots, std::span<const std::int32_t> depths,
                const PlanCosts& costs) {
    const std::optional<CycleYield> yield = yield_of(slots, depths, costs);
    return yield && yield->ms > 0.0 ? 1000.0 * yield->tokens / yield->ms : 0.0;
}

DepthPlan best_plan(std::span<const PlanSlot> slots, const PlanCosts& costs) {
    DepthPlan plan;
    plan.depths.assign(slots.size(), 0);
    if (costs.cycle_ms.empty()) {
        return plan;
    }
    const std::vector<Step> steps = steps_of(slots);
    std::int32_t deepest = 0;
    for (const Step& step : steps) {
        deepest = std::max(deepest, step.depth);
    }
    const double tokens = static_cast<double>(slots.size()) + costs.fixed_tokens;
    const double undrafted_ms =
        costs.cycle_ms.front() + costs.draft.of(costs.fixed_drafting, costs.fixed_deepest);
    Choice best{0, 0, 0.0, tokens, undrafted_ms};
    std::vector<Step> within = steps;
    // With very many steps not every depth is tried as the deepest: a plan must take far less than a cycle.
    const std::int32_t share = steps.size() > many_steps ? 3 : deepest + 1;
    while (deepest > 0) {
        improve(best, within, deepest, tokens, slots.data(), costs);
        deepest -= std::max(1, deepest / share);
        std::erase_if(within, [&](const Step& step) { return step.depth > deepest; });
    }
    std::size_t n_taken = 0;
    for (const Step& step : steps) {
        if (n_taken == best.n_steps) {
            break;
        }
        if (step.depth <= best.deepest) {
            plan.depths[step.slot] = step.depth;
            ++n_taken;
        }
    }
    plan.score = score_of(slots, plan.depths, costs);
    return plan;
}

}  // namespace paddock
