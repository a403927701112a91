#include "core/speculation/depth_control.h"

#include <algorithm>
#include <utility>

#include "core/speculation/draft_log.h"

namespace paddock {
namespace {

/// Drafting cycles between two baseline probes, as a share of the interval: numbers of slots may alternate.
constexpr std::int32_t least_probe_share = 16;
/// A position that most drafts reach is averaged over this many times more of them than one seldom reached.
constexpr double usual_share = 8.0;
/// Of the weight of an outcome in a slot's own means, that in the means of all slots.
constexpr double outlook_share = 2.0;
/// Trials may take this share of the time, and save up for as many undrafted cycles.
constexpr double trial_share = 0.01;
constexpr double most_trial_cycles = 4.0;

}  // namespace

DepthControl::DepthControl(const DepthParams& params, std::int32_t n_slots, Log log)
    : params_(params),
      log_(std::move(log)),
      model_(params.ewma, params.min_samples),
      slots_(static_cast<std::size_t>(std::max(0, n_slots))),
      last_undrafted_(slots_.size() + 1, -1) {
    finds_.fill(1.0);
}

DepthControl::Slot* DepthControl::slot_at(SequenceId slot) {
    const auto index = static_cast<std::size_t>(slot);
    return slot >= 0 && index < slots_.size() ? &slots_[index] : nullptr;
}

const DepthControl::Slot* DepthControl::slot_at(SequenceId slot) const {
    const auto index = static_cast<std::size_t>(slot);
    return slot >= 0 && index < slots_.size() ? &slots_[index] : nullptr;
}

DepthControl::Lane& DepthControl::lane_of(SequenceId slot, DraftType type) {
    return slots_[static_cast<std::size_t>(slot)].lanes[static_cast<std::size_t>(type)];
}

void DepthControl::begin(SequenceId slot, DraftType type, const DepthSetting& setting, bool keep) {
    Slot* at = slot_at(slot);
    if (at == nullptr) {
        return;
    }
    at->is_type_known = false;
    Lane& lane = lane_of(slot, type);
    if (!keep || !lane.state.is_set || !is_comparable(lane.state.setting, setting)) {
        lane.state.clear_data();
        lane.found = finds_[static_cast<std::size_t>(type)];
        at->rows = 1.0;
        at->tokens = 1.0;
    }
    lane.state.setting = setting;
    lane.state.setting.base = std::clamp(setting.base, 0, AcceptanceTable::n_positions);
    lane.state.is_set = true;
    lane.is_asked = lane.may_probe = lane.is_probing = lane.is_look_due = false;
}

void DepthControl::reset(SequenceId slot) {
    if (Slot* at = slot_at(slot)) {
        for (std::size_t type = 0; type < n_types; ++type) {
            at->lanes[type].state.clear_data();
            at->lanes[type].found = finds_[type];
            at->lanes[type].is_look_due = false;
        }
        at->rows = 1.0;
        at->tokens = 1.0;
    }
}

void DepthControl::end(SequenceId slot) {
    if (Slot* at = slot_at(slot)) {
        at->is_generating = false;
        for (Lane& lane : at->lanes) {
            lane.is_asked = lane.may_probe = lane.is_probing = false;
        }
    }
}

void DepthControl::forget_costs() {
    model_.clear();
    std::fill(last_undrafted_.begin(), last_undrafted_.end(), -1);
}

void DepthControl::start_cycle(std::span<const SequenceId> generating, std::int64_t n_memory_tokens) {
    generating_.clear();
    for (Slot& slot : slots_) {
        slot.is_generating = false;
        slot.drafted = slot.accepted = slot.taken = 0;
        slot.hoped = 0.0;
        for (Lane& lane : slot.lanes) {
            lane.is_trial = lane.is_shortened = false;
        }
    }
    for (const SequenceId id : generating) {
        if (Slot* slot = slot_at(id)) {
            slot->is_generating = true;
            generating_.push_back(id);
        }
    }
    n_memory_tokens_ = n_memory_tokens;
    const auto width = static_cast<std::int32_t>(generating_.size());
    baseline_ms_ = model_.cycle_ms(width, n_memory_tokens);
    is_baseline_probe_ = is_baseline_due();
    if (is_baseline_probe_) {
        ++n_baseline_probes_;
        last_probe_cycle_ = n_drafting_cycles_;
        return;
    }
    for (std::size_t type = 0; type < n_types; ++type) {
        plan_probes(draft_type_names[type].first);
    }
    for (Slot& slot : slots_) {
        slot.is_type_known = slot.is_type_known && slot.is_generating;
        for (Lane& lane : slot.lanes) {
            lane.is_asked = lane.is_probing = false;
        }
    }
}

bool DepthControl::is_baseline_due() const {
    if (params_.baseline_interval <= 0 || generating_.empty()) {
        return false;
    }
    const bool is_drafting = std::any_of(generating_.begin(), generating_.end(), [&](SequenceId id) {
        const auto& lanes = slots_[static_cast<std::size_t>(id)].lanes;
        return std::any_of(lanes.begin(), lanes.end(), [](const Lane& lane) {
            return lane.is_asked && lane.state.setting.is_profit() && lane.state.counters.n_max > 0;
        });
    });
    const std::int64_t gap = n_drafting_cycles_ - last_probe_cycle_;
    if (!is_drafting || (last_probe_cycle_ >= 0 && gap < params_.baseline_interval / least_probe_share)) {
        return false;
    }
    const std::int64_t last = last_undrafted_[generating_.size()];
    return last < 0 || n_drafting_cycles_ - last >= params_.baseline_interval ||
           model_.is_stale(static_cast<std::int32_t>(generating_.size()), n_memory_tokens_);
}

std::int32_t DepthControl::cap(SequenceId slot, DraftType type, bool advance) {
    Slot* at = slot_at(slot);
    if (at == nullptr || !lane_of(slot, type).state.is_set) {
        return 0;
    }
    Lane& lane = lane_of(slot, type);
    const DepthState& state = lane.state;
    DepthCounters counters = state.counters;
    std::int32_t cap = state.setting.base;
    bool is_probing = false;
    if (is_baseline_probe_ && !state.setting.is_profit()) {
        return 0;
    }
    if (state.setting.is_profit()) {
        const CycleLeave leave{baseline_ms_.has_value(), is_baseline_probe_, lane.may_probe,
                               is_model_drafter(type), outlooks_[static_cast<std::size_t>(type)].n_samples()};
        const bool is_off = counters.n_max == 0 && counters.warm_up == 0;
        cap = profit_cap(counters, state.setting, params_, leave);
        is_probing = is_off && cap > 0;
        if (advance && counters.n_max > 0 && cap > counters.n_max &&
            !may_try(std::array{Trial{slot, cap}}, type)) {
            cap = counters.n_max;
        }
    } else if (state.setting.is_fringe()) {
        cap = fringe_cap(counters, state.setting, params_);
    }
    if (advance) {
        const std::int32_t old = state.counters.n_max;
        lane.is_trial = cap > old;
        // A slot at its base has no depth to explore but what is cut off its drafts.
        const bool is_turn =
            counters.explore != state.counters.explore && counters.explore % params_.explore_interval == 0;
        lane.is_look_due = lane.is_look_due || (is_turn && cap == state.setting.base);
        lane.state.counters = counters;
        lane.state.counters.n_max = old;
        if (counters.n_max != old) {
            change_depth(slot, type, counters.n_max, 0.0);
        }
        lane.is_asked = true;
        lane.is_probing = is_probing;
        lane.may_probe = false;
        if (!at->is_type_known) {
            at->type = type;
            at->is_type_known = true;
        }
    }
    return cap < state.setting.n_min ? 0 : cap;
}

void DepthControl::on_verified(SequenceId slot, DraftType type, std::int32_t n_drafted,
                               std::int32_t n_accepted, std::int32_t n_examined, std::int32_t n_covered) {
    Slot* at = slot_at(slot);
    if (at == nullptr || n_drafted <= 0) {
        return;
    }
    at->type = type;
    at->is_type_known = true;
    at->drafted = n_drafted;
    at->accepted = n_accepted;
    Lane& lane = lane_of(slot, type);
    DepthState& state = lane.state;
    if (state.counters.warm_up > 0 || lane.is_probing) {
        state.counters.on_trial(n_drafted, n_accepted);
    }
    const bool is_sure = n_accepted == n_drafted && n_drafted >= state.counters.n_max;
    if (is_sure || !lane.is_shortened || n_accepted < n_drafted) {
        state.counters.streak = is_sure ? state.counters.streak + 1 : 0;
    }
    learn(lane, type, 0, n_accepted, n_examined);
    state.fringe.add(n_accepted, n_covered);
    if (!is_model_drafter(type) && state.counters.warm_up > 0) {
        --state.counters.warm_up;
    }
    if (state.setting.is_fringe() && state.counters.n_max >= 0) {
        const std::int32_t depth = state.fringe.decide(state.counters.n_max, state.setting.base, params_);
        change_depth(slot, type, depth, std::max(0.0, state.fringe.rate(depth, state.setting.base, params_)));
    }
}

void DepthControl::learn(Lane& lane, DraftType type, std::int32_t n_told, std::int32_t n_accepted,
                         std::int32_t n_examined) {
    std::array<double, static_cast<std::size_t>(AcceptanceTable::n_positions)> gains{};
    const std::int32_t n_expected = std::clamp(n_examined, 0, AcceptanceTable::n_positions);
    const std::span<double> expected(gains.data(), static_cast<std::size_t>(n_expected));
    fill_gains(lane.state, type, expected);
    const double usual_weight = params_.ewma / usual_share;
    lane.state.table.add(n_accepted, n_examined, lane.state.counters.n_max, usual_weight, params_.ewma,
                         n_told);
    const double outlook_weight = params_.ewma / outlook_share;
    outlooks_[static_cast<std::size_t>(type)].add(n_accepted, n_examined, AcceptanceTable::n_positions,
                                                  outlook_weight, outlook_weight, n_told);
    if (const auto since = lane.state.change.add(expected, n_accepted, params_.ewma, n_told)) {
        lane.state.table = *since;
    }
}

bool DepthControl::wants_look(SequenceId slot, DraftType type) const {
    const Slot* at = slot_at(slot);
    if (at == nullptr || is_model_drafter(type)) {
        return false;
    }
    const DepthState& state = at->lanes[static_cast<std::size_t>(type)].state;
    return state.is_set && state.setting.is_profit() && state.counters.n_max == 0 &&
           state.counters.warm_up == 0;
}

void DepthControl::on_look(SequenceId slot, DraftType type, bool is_found) {
    if (slot_at(slot) == nullptr) {
        return;
    }
    const double outcome = is_found ? 1.0 : 0.0;
    double& found = lane_of(slot, type).found;
    found += params_.ewma * (outcome - found);
    double& finds = finds_[static_cast<std::size_t>(type)];
    finds += params_.ewma / outlook_share * (outcome - finds);
}

void DepthControl::on_compared(SequenceId slot, DraftType type, std::int32_t n_told, std::int32_t n_accepted,
                               std::int32_t n_examined) {
    if (slot_at(slot) != nullptr && n_examined > n_told) {
        learn(lane_of(slot, type), type, n_told, n_accepted, n_examined);
    }
}

void DepthControl::add_side_chains(SequenceId slot, std::int32_t n_rows, std::int32_t n_accepted) {
    if (Slot* at = slot_at(slot)) {
        at->drafted += n_rows;
        at->accepted += n_accepted;
    }
}

void DepthControl::end_cycle(const Cycle& cycle) {
    settle_trials();
    add_means();
    if (cycle.n_drafting > 0) {
        ++n_drafting_cycles_;
    }
    if (cycle.is_pure) {
        if (baseline_ms_) {
            most_trial_ms_ = most_trial_cycles * *baseline_ms_;
            trial_ms_ = std::min(trial_ms_ + trial_share * (cycle.model_ms + cycle.draft_ms), most_trial_ms_);
        }
        model_.add_cycle(cycle.rows, cycle.model_ms, cycle.n_memory_tokens);
        for (const DraftWork& work : cycle.works) {
            model_.add_draft(work);
        }
        if (cycle.n_drafting == 0) {
            last_undrafted_[generating_.size()] = n_drafting_cycles_;
        }
        for (std::size_t type = 0; type < n_types; ++type) {
            decide(draft_type_names[type].first);
        }
    }
    for (std::size_t type = 0; type < n_types; ++type) {
        judge_probes(draft_type_names[type].first);
    }
    if (std::exchange(has_changed_, false) && log_) {
        const auto width = static_cast<std::int32_t>(generating_.size());
        log_(model_line(width, model_.cycle_ms(width, n_memory_tokens_), cycle.rows,
                        model_.cycle_ms(cycle.rows, n_memory_tokens_), last_gain_));
    }
}

void DepthControl::add_means() {
    for (const SequenceId id : generating_) {
        Slot& slot = slots_[static_cast<std::size_t>(id)];
        slot.rows += params_.ewma * (1.0 + slot.drafted - slot.rows);
        slot.tokens += params_.ewma * (1.0 + slot.accepted - slot.tokens);
    }
}

/// Off slots go on probing together while most of their drafts start right, and each one alone until its
/// n-gram drafter finds something.
void DepthControl::judge_probes(DraftType type) {
    const auto is_probing = [&](SequenceId id) {
        const Lane& lane = lane_of(id, type);
        return lane.is_probing && lane.state.counters.n_max == 0;
    };
    std::int32_t n_probing = 0;
    std::int32_t n_right = 0;
    for (const SequenceId id : generating_) {
        const Slot& slot = slots_[static_cast<std::size_t>(id)];
        n_probing += is_probing(id) ? 1 : 0;
        n_right += is_probing(id) && slot.type == type && slot.accepted > 0 ? 1 : 0;
    }
    for (const SequenceId id : generating_) {
        const Slot& slot = slots_[static_cast<std::size_t>(id)];
        Lane& lane = lane_of(id, type);
        DepthCounters& counters = lane.state.counters;
        if (counters.n_max > 0) {
            counters.failed_probes = 0;
        } else if (is_probing(id)) {
            const bool is_empty = slot.drafted == 0 || slot.type != type;
            if (2 * n_right > n_probing || (is_empty && !is_model_drafter(type))) {
                counters.probe = probe_wait(counters, params_.probe_interval);
            } else {
                ++counters.failed_probes;
            }
        }
    }
}

DepthControl::View DepthControl::view(SequenceId slot, DraftType type) const {
    View view;
    const Slot* at = slot_at(slot);
    if (at == nullptr) {
        return view;
    }
    const Lane& lane = at->lanes[static_cast<std::size_t>(type)];
    const DepthState& state = lane.state;
    view.base = state.setting.base;
    view.score = at->score;
    view.gain = at->gain;
    view.fringe = std::max(0.0, state.fringe.rate(state.counters.n_max, view.base, params_));
    const std::int32_t n_max = state.counters.n_max;
    if (state.is_set && !state.setting.adaptive) {
        view.state = "on";
        view.depth = view.base;
    } else if (state.counters.warm_up > 0) {
        view.state = "warmup";
        view.depth = view.base;
    } else if (lane.is_probing) {
        view.state = "probe";
        view.depth = probe_depth(state.setting, params_.probe_fraction);
    } else if (n_max >= 0) {
        view.state = n_max > 0 ? "on" : "off";
        view.depth = n_max;
    }
    return view;
}

}  // namespace paddock
