// What adaptive depth knows of one slot with one drafter, and how deep that lets it draft (11 §15).
#pragma once

#include <cstdint>
#include <string>

#include "core/speculation/acceptance_change.h"
#include "core/speculation/acceptance_table.h"
#include "core/speculation/fringe.h"
#include "core/speculation/speculation_params.h"

namespace paddock {

/// How a request drafts with one drafter.
struct DepthSetting {
    /// Longest draft, and the shortest of use; an n-gram drafter's own.
    std::int32_t base = 0;
    std::int32_t n_min = 0;
    float p_min = 0.0F;
    float temperature = 0.0F;  // of the drafter
    std::string mode;          // of verification
    bool adaptive = true;
    std::string controller;  // profit fringe

    bool operator==(const DepthSetting&) const = default;
    bool is_profit() const { return adaptive && controller != "fringe"; }
    bool is_fringe() const { return adaptive && controller == "fringe"; }
};

/// Whether what was seen under `a` holds under `b` (11 §15.6).
bool is_comparable(const DepthSetting& a, const DepthSetting& b);

struct DepthCounters {
    std::int32_t n_max = -1;  // -1 unset, 0 off
    std::int32_t warm_up = 0;
    std::int32_t probe = 0;
    std::int64_t explore = 0;
    std::int32_t failed_probes = 0;
    /// Longest draft of a warm-up or probe; doubles with each one that was right throughout.
    std::int32_t reach = 1;
    /// Drafts in a row that were right throughout, and no shorter than the slot may draft.
    std::int32_t streak = 0;

    /// A change starts the count to the next probe anew.
    void set_depth(std::int32_t depth);
    /// Of a trial of `n_drafted` tokens the first `n_accepted` were right.
    void on_trial(std::int32_t n_drafted, std::int32_t n_accepted);
};

struct DepthState {
    bool is_set = false;
    DepthSetting setting;
    DepthCounters counters;
    Fringe fringe;
    AcceptanceTable table;
    AcceptanceChange change;

    void clear_data();
};

/// What a cycle allows a slot under `profit`.
struct CycleLeave {
    bool is_baseline_known = false;
    bool is_baseline_probe = false;
    /// An off slot drafts in this cycle to see how it would do.
    bool may_probe = false;
    /// A cycle of warm-up counts as soon as it starts; else once a draft was verified.
    bool spends_warm_up = true;
    /// Drafts of other texts that tell what a warm-up would.
    std::int64_t n_known = 0;
};

std::int32_t probe_depth(const DepthSetting& setting, double fraction);
/// Tokens of the next probe: as far as the last ones were right, and no further than `probe_depth`.
std::int32_t probe_cap(const DepthCounters& counters, const DepthSetting& setting, const DepthParams& params);
std::int32_t next_rung(std::int32_t base, std::int32_t depth, double fraction);
/// Cycles from one probe of an off slot to the next (11 §17.10).
std::int32_t probe_wait(const DepthCounters& counters, std::int32_t interval);

/// Both count the cycle in `counters`; a look-ahead works on a copy of them.
std::int32_t profit_cap(DepthCounters& counters, const DepthSetting& setting, const DepthParams& params,
                        const CycleLeave& leave);
std::int32_t fringe_cap(DepthCounters& counters, const DepthSetting& setting, const DepthParams& params);

}  // namespace paddock
