// The part of DepthControl that looks at the drafts of one cycle once they are there.
#include <algorithm>
#include <numeric>
#include <utility>

#include "core/speculation/depth_control.h"

namespace paddock {
namespace {

/// Drafts stay whole unless it is this much better that they do not: times of single cycles scatter.
constexpr double least_gain = 0.05;

}  // namespace

void DepthControl::set_taken(Found& draft, DraftType type, std::int32_t size) {
    Lane& lane = lane_of(draft.slot, type);
    lane.is_shortened = size < draft.size;
    lane.is_look_due = lane.is_look_due && lane.is_shortened;
    draft.size = size;
    std::array<double, static_cast<std::size_t>(AcceptanceTable::n_positions)> gains{};
    const std::span<double> known(gains.data(), static_cast<std::size_t>(size));
    fill_gains(lane.state, type, known);
    Slot& slot = slots_[static_cast<std::size_t>(draft.slot)];
    slot.taken = size;
    slot.hoped = std::accumulate(known.begin(), known.end(), 0.0);
}

/// Leaves drafts whole in `depths` that are due for a look, where the time that it takes is left for trials:
/// what is cut off in every cycle would never be seen again.
void DepthControl::take_looks(std::span<Found* const> drafts, DraftType type, const PlanCosts& costs,
                              std::span<const PlanSlot> slots, std::vector<std::int32_t>& depths) {
    for (std::size_t i = 0; i < drafts.size(); ++i) {
        if (!lane_of(drafts[i]->slot, type).is_look_due) {
            continue;
        }
        std::vector<std::int32_t> longer = depths;
        longer[i] = drafts[i]->size;
        const auto usual = yield_of(slots, depths, costs);
        const auto look = yield_of(slots, longer, costs);
        const double loss_ms =
            usual && look ? std::max(0.0, look->ms - look->tokens * usual->ms / usual->tokens) : 0.0;
        if (loss_ms <= trial_ms_) {
            trial_ms_ -= loss_ms;
            depths = std::move(longer);
        }
    }
}

void DepthControl::shorten(std::span<Found> drafts, DraftType type) {
    std::vector<Found*> open;
    std::int32_t most_rows = 0;
    for (Found& draft : drafts) {
        if (slot_at(draft.slot) == nullptr) {
            continue;
        }
        on_look(draft.slot, type, draft.size > 0);
        if (draft.size <= 0) {
            continue;
        }
        draft.size = std::min(draft.size, AcceptanceTable::n_positions);
        const Lane& lane = lane_of(draft.slot, type);
        if (draft.is_whole || lane.is_trial || !lane.state.setting.is_profit()) {
            set_taken(draft, type, draft.size);
        } else {
            open.push_back(&draft);
            most_rows += draft.size;
        }
    }
    if (open.empty()) {
        return;
    }
    PlanCosts costs;
    auto rows = static_cast<std::int32_t>(generating_.size());
    costs.fixed_tokens = static_cast<double>(generating_.size() - open.size());
    for (const SequenceId id : generating_) {
        const Slot& slot = slots_[static_cast<std::size_t>(id)];
        rows += slot.taken;
        costs.fixed_tokens += slot.hoped;
    }
    const std::vector<double> cycle_ms = model_.cycle_ms(rows, most_rows + 1, n_memory_tokens_);
    costs.cycle_ms = cycle_ms;
    constexpr auto stride = static_cast<std::size_t>(AcceptanceTable::n_positions);
    std::vector<double> gains(open.size() * stride);
    std::vector<PlanSlot> slots;
    slots.reserve(open.size());
    for (std::size_t i = 0; i < open.size(); ++i) {
        const DepthState& state = lane_of(open[i]->slot, type).state;
        const std::span<double> known(gains.data() + i * stride, static_cast<std::size_t>(open[i]->size));
        fill_gains(state, type, known);
        slots.push_back({.gains = known, .n_min = state.setting.n_min});
    }
    std::vector<std::int32_t> whole;
    whole.reserve(open.size());
    for (const Found* draft : open) {
        whole.push_back(draft->size);
    }
    const double whole_score = score_of(slots, whole, costs);
    DepthPlan plan = best_plan(slots, costs);
    // Costs that are not known far enough are learnt by whole drafts alone.
    if (whole_score <= 0.0 || plan.score < (1.0 + least_gain) * whole_score) {
        plan.depths = whole;
    } else {
        take_looks(open, type, costs, slots, plan.depths);
    }
    for (std::size_t i = 0; i < open.size(); ++i) {
        set_taken(*open[i], type, plan.depths[i]);
    }
}

}  // namespace paddock
