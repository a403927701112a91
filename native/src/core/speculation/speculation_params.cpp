#include "core/speculation/speculation_params.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/checks.h"
#include "core/speculation/draft_type.h"
#include "core/speculation/ranges.h"

namespace paddock {

namespace {

constexpr auto verify_modes = std::to_array<std::string_view>({"exact", "rejection", "match-first"});
constexpr auto reduced_paths = std::to_array<std::string_view>({"auto", "off", "host", "device"});
constexpr auto reduced_drafters = std::to_array<std::string_view>({"all", "block"});
constexpr auto guard_modes = std::to_array<std::string_view>({"off", "stop", "force-close"});
constexpr std::int32_t max_baseline_interval = 4096;
constexpr std::int32_t max_branch_budget = 64;
/// As many as a drafter ranks (11 §5.5).
constexpr std::int32_t max_topk = 10;
constexpr std::int32_t max_branch_seqs = 32;
/// Tokens of a pattern or of a draft, as llama-server has them.
constexpr std::int32_t max_ngram = 1024;
/// Copies of a running state that are made unasked; each is as large as the state of a slot.
constexpr std::int32_t max_snapshots_unasked = 8;
/// Repetitions of the longest period that a window has to have room for.
constexpr std::int32_t periods_in_window = 3;

void check_fringe(Checks& checks, const DepthParams& depth) {
    const bool holds =
        depth.fringe_min >= 0.0 && depth.fringe_min < depth.fringe_max && depth.fringe_max <= 1.0;
    checks.expect(holds, "--spec-dm-fringe-min is " + text_of(depth.fringe_min) +
                             " and --spec-dm-fringe-max is " + text_of(depth.fringe_max) +
                             "; they have to be from 0 to 1, the first one smaller");
    checks.range("--spec-dm-fringe-window", depth.fringe_window, 1, max_depth);
    checks.range("--spec-dm-min-reach", depth.min_reach, 1, max_depth);
}

void check_depth(Checks& checks, const DepthParams& depth) {
    checks.word("--spec-dm-controller", depth.controller, controllers);
    check_fringe(checks, depth);
    checks.at_least("--spec-dm-off-dwell", depth.off_dwell, 1);
    checks.at_least("--spec-dm-probe-interval", depth.probe_interval, 1);
    checks.range("--spec-dm-probe-fraction", depth.probe_fraction, 0.01, 1.0);
    checks.at_least("--spec-dm-explore-interval", depth.explore_interval, 1);
    checks.range("--spec-dm-profit-min", depth.profit_min, 0.0, 0.5);
    checks.range("--spec-dm-profit-raise", depth.raise, 0.0, 1.0);
    checks.range("--spec-dm-profit-lower", depth.lower, 0.0, 1.0);
    checks.range("--spec-dm-profit-ewma", depth.ewma, 0.01, 1.0);
    checks.range("--spec-dm-profit-min-samples", depth.min_samples, 1, max_depth);
    checks.range("--spec-dm-profit-warmup", depth.warmup, 0, max_depth);
    checks.range("--spec-dm-profit-baseline-interval", depth.baseline_interval, 0, max_baseline_interval);
}

void check_ngram(Checks& checks, const std::string& flag, const NgramLengths& lengths) {
    checks.range(flag + "-size-n", lengths.n, 1, max_ngram);
    checks.range(flag + "-size-m", lengths.m, 1, max_ngram);
    checks.at_least(flag + "-min-hits", lengths.min_hits, 1);
}

void check_ngram_mod(Checks& checks, const NgramModLengths& lengths) {
    checks.range("--spec-ngram-mod-n-match", lengths.match, 1, max_ngram);
    checks.range("--spec-ngram-mod-n-max", lengths.max, 1, max_ngram);
    checks.range("--spec-ngram-mod-n-min", lengths.min, 0, lengths.max);
}

std::int32_t longest_of(DraftType type, const SpeculationParams& params) {
    switch (type) {
        case DraftType::ngram_simple: return params.simple.m;
        case DraftType::ngram_map_k: return params.map_k.m;
        case DraftType::ngram_map_k4v: return params.map_k4v.m;
        case DraftType::ngram_mod: return params.mod.max;
        case DraftType::ngram_cache: return longest_cache_draft;
        case DraftType::draft_simple: break;
    }
    return params.n_max;
}

/// The flag, and the field of a request, that say the same.
std::string guard_name(const std::string& flag, const std::string& field) {
    return "--reasoning-loop-" + flag + " (reasoning_loop_guard." + field + ")";
}

}  // namespace

std::int32_t longest_draft(const SpeculationParams& params) {
    std::int32_t longest = 0;
    for (const std::string& name : params.types) {
        const std::optional<DraftType> type = draft_type_of(name);
        if (type.has_value()) {
            longest = std::max(longest, longest_of(*type, params));
        }
    }
    return longest;
}

std::int32_t wanted_snapshots(const SpeculationParams& params) {
    if (params.rs_snapshots >= 0) {
        return params.types.empty() ? 0 : params.rs_snapshots;
    }
    const bool drafts_by_model = std::ranges::any_of(params.types, [](const std::string& name) {
        const std::optional<DraftType> type = draft_type_of(name);
        return type.has_value() && is_model_drafter(*type);
    });
    return drafts_by_model ? std::min(params.n_max, max_snapshots_unasked) : 0;
}

bool makes_side_chains(const SpeculationParams& params) {
    return std::ranges::any_of(params.types, [](const std::string& name) {
        const std::optional<DraftType> type = draft_type_of(name);
        return type == DraftType::draft_simple || type == DraftType::ngram_map_k4v;
    });
}

std::vector<std::string> problems_of(const SpeculationParams& params) {
    Checks checks;
    checks.range("--spec-draft-n-max", params.n_max, 1, max_depth);
    checks.range("--spec-draft-n-min", params.n_min, 0, params.n_max);
    checks.range("--spec-draft-p-min", params.p_min, 0.0F, 1.0F);
    checks.range("--spec-branch-budget", params.branch_budget, 0, max_branch_budget);
    checks.range("--spec-draft-topk", params.topk, 1, max_topk);
    checks.range("--spec-branch-seqs", params.branch_seqs, 1, max_branch_seqs);
    checks.range("--spec-draft-p-split", params.p_split, 0.0F, 1.0F);
    checks.expect(std::isfinite(params.draft_temperature),
                  "--spec-draft-temp is " + text_of(params.draft_temperature) +
                      "; it has to be 'auto', or a finite number, at least 0");
    checks.word("--spec-verify", params.verify, verify_modes);
    checks.expect(params.rs_snapshots <= max_depth,
                  "--spec-rs-snapshots is " + std::to_string(params.rs_snapshots) +
                      "; it has to be 'auto', or from 0 to " + std::to_string(max_depth));
    checks.word("--spec-reduced", params.reduced, reduced_paths);
    checks.word("--spec-reduced-drafters", params.reduced_drafters, reduced_drafters);
    check_ngram(checks, "--spec-ngram-simple", params.simple);
    check_ngram(checks, "--spec-ngram-map-k", params.map_k);
    check_ngram(checks, "--spec-ngram-map-k4v", params.map_k4v);
    check_ngram_mod(checks, params.mod);
    check_depth(checks, params.depth);
    return checks.take();
}

std::vector<std::string> problems_of(const LoopGuardParams& params) {
    Checks checks;
    checks.word("--reasoning-loop-guard (reasoning_loop_guard.mode)", params.mode, guard_modes);
    const std::string min_tokens = guard_name("min-tokens", "min_reasoning_tokens");
    const std::string window = guard_name("window", "window_tokens");
    const std::string period = guard_name("max-period", "max_period");
    const std::string coverage = guard_name("min-coverage", "min_repeated_coverage");
    checks.at_least(min_tokens, params.min_reasoning_tokens, 0);
    checks.at_least(window, params.window_tokens, 1);
    checks.at_least(period, params.max_period, 1);
    checks.at_least(coverage, params.min_repeated_coverage, 1);
    checks.at_least(guard_name("check-interval", "check_interval"), params.check_interval, 1);
    checks.at_least(guard_name("interventions", "interventions_max"), params.interventions_max, 0);
    const auto number = [](std::int32_t value) { return std::to_string(value); };
    checks.expect(params.window_tokens >= params.min_repeated_coverage,
                  window + " is " + number(params.window_tokens) + "; it has to be at least " +
                      number(params.min_repeated_coverage) + ", which is " + coverage);
    const std::int32_t longest = params.window_tokens / periods_in_window;
    checks.expect(params.max_period <= longest, period + " is " + number(params.max_period) +
                                                    "; it has to be at most " + number(longest) +
                                                    ", a third of " + window);
    checks.expect(params.min_reasoning_tokens >= params.min_repeated_coverage,
                  min_tokens + " is " + number(params.min_reasoning_tokens) + "; it has to be at least " +
                      number(params.min_repeated_coverage) + ", which is " + coverage);
    return checks.take();
}

}  // namespace paddock
