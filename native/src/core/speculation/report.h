// What drafting and the loop guard did for one request, as clients and dashboards see it (11 §21).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/speculation/draft_type.h"

namespace paddock {

struct VerifyCounts {
    std::int64_t exact = 0;
    std::int64_t prob_accept = 0;
    std::int64_t reject = 0;
    std::int64_t no_prob = 0;
    std::int64_t bonus = 0;
};

struct RollbackCounts {
    std::int64_t none = 0;
    std::int64_t trim = 0;
    std::int64_t snapshot = 0;
    std::int64_t redecode = 0;
    std::int64_t refill = 0;
};

/// What drafts of one type came to; the last two in tokens.
struct DraftTypeCounts {
    DraftType type = DraftType::draft_simple;
    std::int64_t drafts = 0;
    std::int64_t drafted = 0;
    std::int64_t accepted = 0;
};

/// How the latest draft was judged: by the `k` best tokens of its rows, or why not (11 §11).
struct ReducedReport {
    std::string path = "off";  // off host
    std::string reason;
    /// Of a draft whose request allows it: eligible, coverage, or what the rows lacked.
    std::string view_reason;
    std::int32_t k = 1;
};

struct SpeculationReport {
    std::vector<std::string> types;
    std::string active_type = "none";
    std::string fallback_reason;
    std::string idle_reason;
    bool adaptive = false;
    std::string controller;
    /// Tokens that may be drafted now, and at most.
    std::int32_t depth = 0;
    std::int32_t depth_base = 0;
    std::string depth_state = "off";  // unset off warmup probe on
    /// Share of accepted tokens at the deepest positions; tokens a second expected of the last plan, and what
    /// it gains over no drafts.
    double fringe = 0.0;
    double score = 0.0;
    double gain = 0.0;
    std::int64_t drafts = 0;
    std::int64_t drafted = 0;
    std::int64_t accepted = 0;
    /// In the order of their first drafts.
    std::vector<DraftTypeCounts> by_type;
    /// Drafts that covered the position, and of those the ones accepted there.
    std::vector<std::int64_t> drafted_by_position;
    std::vector<std::int64_t> accepted_by_position;
    std::string verify_mode;  // exact rejection match-first
    VerifyCounts verify_counts;
    ReducedReport reduced;
    /// Drafts with side chains, and why the last one had none; empty: it had, or none were asked for.
    std::int64_t tree_drafts = 0;
    std::string tree_reason;
    RollbackCounts rollbacks;
    bool suppressed = false;
};

struct LoopGuardReport {
    std::string mode = "off";
    bool triggered = false;
    std::string action;  // stop force-close
    std::string reason;  // exact near
    std::int32_t interventions = 0;
    std::int32_t reasoning_tokens = 0;
    std::int32_t visible_tokens = 0;
};

/// Counts of the engine since its start; milliseconds of phases (12 §18).
struct SpeculationTotals {
    std::int64_t drafts = 0;
    std::int64_t drafted = 0;
    std::int64_t accepted = 0;
    std::vector<std::int64_t> drafted_by_position;
    std::vector<std::int64_t> accepted_by_position;
    VerifyCounts verify_counts;
    /// Verifications by the reason for or against reduced ones.
    std::map<std::string, std::int64_t> reduced;
    std::int64_t tree_drafts = 0;
    RollbackCounts rollbacks;
    /// In the order draft, verify, accept, other.
    std::array<double, 4> phase_ms{};
    /// In the order up, down, off, on; of `profit`, then of `fringe`.
    std::array<std::array<std::int64_t, 4>, 2> controller_changes{};
    std::int64_t baseline_probes = 0;
    std::int64_t suppressions = 0;
    /// In the order stop, force-close; in visible text, then in reasoning.
    std::array<std::array<std::int64_t, 2>, 2> loop_guard_actions{};
};

/// A type that was asked for and does not run, with its reason of 11 §3.4.
struct DroppedType {
    std::string type;
    std::string reason;
};

/// Which types run on a loaded model, and why others don't.
struct SpeculationFacts {
    std::vector<std::string> types;
    std::vector<DroppedType> dropped;
    /// Of 11 §3.4; empty when every type that was asked for runs.
    std::string fallback_reason;
    /// Where the best tokens of a row are found, and why it is not the device if that was asked for (11
    /// §11.4).
    std::string reduced_path = "off";
    std::string reduced_reason;
    /// Drafts may have side chains, or why none has (11 §12.2).
    bool has_trees = false;
    std::string tree_reason;
};

}  // namespace paddock
