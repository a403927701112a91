// The part of DepthControl that chooses depths for several slots at once (11 §17.5-17.10).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "core/speculation/depth_control.h"

namespace paddock {
namespace {

/// Probes of an off slot come this many times as often while there is time to spare.
constexpr std::int32_t idle_probe_share = 4;

/// Nobody guesses what more than so many times the rows would cost that were measured.
constexpr std::int32_t guessed_share = 2;

/// What the slots of a cycle decode, and draft with one drafter.
struct CycleShape {
    std::int32_t rows = 0;
    std::int32_t n_drafting = 0;
    std::int32_t deepest = 0;

    void add(std::int32_t depth) {
        rows += 1 + depth;
        n_drafting += depth > 0 ? 1 : 0;
        deepest = std::max(deepest, depth);
    }
};

}  // namespace

bool DepthControl::is_member(const Slot& slot, DraftType type) const {
    const Lane& lane = slot.lanes[static_cast<std::size_t>(type)];
    return slot.is_generating && slot.is_type_known && slot.type == type && lane.is_asked &&
           lane.state.setting.is_profit() && lane.state.counters.n_max >= 0;
}

void DepthControl::fill_gains(const DepthState& state, DraftType type, std::span<double> gains) const {
    state.table.fill_gains(gains, params_.min_samples, outlooks_[static_cast<std::size_t>(type)]);
}

void DepthControl::fill_group(Group& group, DraftType type) {
    constexpr auto stride = static_cast<std::size_t>(AcceptanceTable::n_positions);
    group.slots.clear();
    for (const SequenceId id : generating_) {
        if (is_member(slots_[static_cast<std::size_t>(id)], type)) {
            group.slots.push_back(id);
        }
    }
    group.gains.resize(group.slots.size() * stride);
    group.plan_slots.clear();
    std::int32_t most_rows = 0;
    for (std::size_t i = 0; i < group.slots.size(); ++i) {
        const Lane& lane = lane_of(group.slots[i], type);
        const auto base = static_cast<std::size_t>(lane.state.setting.base);
        const std::span<double> gains(group.gains.data() + i * stride, base);
        fill_gains(lane.state, type, gains);
        group.plan_slots.push_back({gains, lane.state.setting.n_min, lane.found});
        most_rows += lane.state.setting.base;
    }
    auto rows = static_cast<std::int32_t>(group.slots.size());
    group.costs = {};
    add_fixed(group, type, rows);
    const std::int32_t measured = std::max(rows, model_.most_measured(n_memory_tokens_));
    const std::int32_t guessed = guessed_share * measured - rows;
    group.cycle_ms = model_.cycle_ms(rows, std::min(most_rows, guessed) + 1, n_memory_tokens_);
    group.costs.cycle_ms = group.cycle_ms;
    group.costs.n_measured = measured - rows;
    group.costs.draft = model_.draft_cost(type);
}

/// The generating slots outside of the group go on as they do.
void DepthControl::add_fixed(Group& group, DraftType type, std::int32_t& rows) const {
    double fixed_rows = 0.0;
    std::size_t next = 0;
    for (const SequenceId id : generating_) {
        if (next < group.slots.size() && group.slots[next] == id) {
            ++next;
            continue;
        }
        const Slot& slot = slots_[static_cast<std::size_t>(id)];
        fixed_rows += slot.rows;
        group.costs.fixed_tokens += slot.tokens;
        if (slot.drafted > 0 && slot.type == type) {
            ++group.costs.fixed_drafting;
            group.costs.fixed_deepest = std::max(group.costs.fixed_deepest, slot.drafted);
        }
    }
    rows += static_cast<std::int32_t>(std::lround(fixed_rows));
}

/// Off slots that are due probe in one cycle, whose cost they share. Whether that could pay at all is not
/// asked: what is known of costs may be wrong, and only a probe would show it.
void DepthControl::plan_probes(DraftType type) {
    const auto is_off = [](const DepthState& state) {
        return state.is_set && state.setting.is_profit() && state.counters.n_max == 0 &&
               state.counters.warm_up == 0;
    };
    // Where probes cost little, time for them is left over.
    const bool has_time = trial_ms_ > 0.0 && 2.0 * trial_ms_ >= most_trial_ms_;
    const auto wait_of = [&](const DepthCounters& counters) {
        return has_time ? params_.probe_interval / idle_probe_share
                        : probe_wait(counters, params_.probe_interval);
    };
    bool is_due = false;
    for (const SequenceId id : generating_) {
        const DepthState& state = lane_of(id, type).state;
        is_due = is_due || (is_off(state) && state.counters.probe + 1 >= wait_of(state.counters));
    }
    for (const SequenceId id : generating_) {
        Lane& lane = lane_of(id, type);
        const DepthCounters& counters = lane.state.counters;
        lane.may_probe = is_due && is_off(lane.state) && counters.probe + 1 >= wait_of(counters) / 2;
    }
    if (!is_due) {
        return;
    }
    std::vector<Trial> trials;
    for (const SequenceId id : generating_) {
        const Lane& lane = lane_of(id, type);
        if (lane.may_probe) {
            trials.push_back({id, probe_cap(lane.state.counters, lane.state.setting, params_)});
        }
    }
    if (may_try(trials, type)) {
        return;
    }
    for (const SequenceId id : generating_) {
        lane_of(id, type).may_probe = false;
    }
}

/// What the cycle loses when the slots of `trials` draft as many tokens as it says instead of their usual
/// ones; below 0 where it wins.
std::optional<double> DepthControl::trial_loss_ms(std::span<const Trial> trials, DraftType type) const {
    CycleShape usual;
    CycleShape trial;
    double tokens = 0.0;
    double more = 0.0;
    for (const SequenceId id : generating_) {
        const Slot& slot = slots_[static_cast<std::size_t>(id)];
        const DepthState& state = slot.lanes[static_cast<std::size_t>(type)].state;
        const std::int32_t depth = std::max(0, state.counters.n_max);
        const auto found = std::ranges::find(trials, id, &Trial::slot);
        const std::int32_t tried = found == trials.end() ? depth : found->depth;
        usual.add(depth);
        trial.add(tried);
        tokens += slot.tokens;
        if (tried > depth) {
            std::array<double, static_cast<std::size_t>(AcceptanceTable::n_positions)> gains{};
            fill_gains(state, type, gains);
            more += found->accepted
                        ? *found->accepted - std::accumulate(gains.begin(), gains.begin() + depth, 0.0)
                        : std::accumulate(gains.begin() + depth, gains.begin() + tried, 0.0);
        }
    }
    const auto usual_ms = model_.cycle_ms(usual.rows, n_memory_tokens_);
    const auto trial_ms = model_.cycle_ms(trial.rows, n_memory_tokens_);
    if (!usual_ms || !trial_ms) {
        return std::nullopt;
    }
    const DraftCost draft = model_.draft_cost(type);
    // The tokens of the trial would have taken their time without it, too.
    return *trial_ms + draft.of(trial.n_drafting, trial.deepest) -
           (*usual_ms + draft.of(usual.n_drafting, usual.deepest)) * (1.0 + more / std::max(1.0, tokens));
}

/// Takes the time that they cost from what is left for trials; false when that is too little.
bool DepthControl::may_try(std::span<const Trial> trials, DraftType type) {
    const double loss_ms = std::max(0.0, trial_loss_ms(trials, type).value_or(0.0));
    if (loss_ms > trial_ms_) {
        return false;
    }
    trial_ms_ -= loss_ms;
    Trials& made = trials_[static_cast<std::size_t>(type)];
    made.paid_ms += loss_ms;
    made.slots.insert(made.slots.end(), trials.begin(), trials.end());
    return true;
}

/// Trials cost what they turned out to: nothing without a draft, and less than nothing where drafts were
/// right, which lets the next ones follow at once.
void DepthControl::settle_trials() {
    for (std::size_t type = 0; type < n_types; ++type) {
        Trials& made = trials_[type];
        if (made.slots.empty()) {
            continue;
        }
        for (Trial& trial : made.slots) {
            const Slot& slot = slots_[static_cast<std::size_t>(trial.slot)];
            const bool has_drafted = slot.type == draft_type_names[type].first;
            trial.depth = has_drafted ? std::min(trial.depth, slot.drafted) : 0;
            trial.accepted = has_drafted ? slot.accepted : 0;
        }
        const double loss_ms = trial_loss_ms(made.slots, draft_type_names[type].first).value_or(made.paid_ms);
        trial_ms_ = std::min(trial_ms_ + made.paid_ms - loss_ms, most_trial_ms_);
        made = {};
    }
}

void DepthControl::decide(DraftType type) {
    std::vector<std::int32_t> current;
    for (const SequenceId id : generating_) {
        if (!is_member(slots_[static_cast<std::size_t>(id)], type)) {
            continue;
        }
        const DepthCounters& counters = lane_of(id, type).state.counters;
        if (counters.warm_up > 0) {
            return;
        }
        current.push_back(counters.n_max);
    }
    if (current.empty()) {
        return;
    }
    fill_group(group_, type);
    const DepthDecision decision = decide_depths(group_.plan_slots, current, group_.costs, params_,
                                                 off_dwells_[static_cast<std::size_t>(type)]);
    last_gain_ = decision.gain;
    for (std::size_t i = 0; i < group_.slots.size(); ++i) {
        Slot& slot = slots_[static_cast<std::size_t>(group_.slots[i])];
        slot.score = decision.score;
        slot.gain = decision.gain;
        if (decision.depths) {
            change_depth(group_.slots[i], type, (*decision.depths)[i], decision.score);
        }
    }
}

void DepthControl::change_depth(SequenceId slot, DraftType type, std::int32_t depth, double score) {
    DepthState& state = lane_of(slot, type).state;
    const std::int32_t old = state.counters.n_max;
    if (depth == old) {
        return;
    }
    state.counters.set_depth(depth);
    has_changed_ = true;
    std::array<std::int64_t, 4>& counts = changes_[state.setting.is_fringe() ? 1 : 0];
    if (depth == 0) {
        counts[2] += old > 0 ? 1 : 0;
    } else if (old <= 0) {
        ++counts[3];
    } else {
        ++counts[depth > old ? 0 : 1];
    }
    if (log_) {
        std::array<char, 160> line{};
        (void)std::snprintf(line.data(), line.size(), "slot %d, %s: draft depth %d -> %d, %s %.2f",
                            static_cast<int>(slot), name_of(type).data(), static_cast<int>(old),
                            static_cast<int>(depth),
                            state.setting.is_fringe() ? "fringe" : "tokens per second", score);
        log_(line.data());
    }
}

}  // namespace paddock
