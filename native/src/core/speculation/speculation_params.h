// What the command line and a request say of drafting (11 §18) and of the loop guard (11 §19.3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace paddock {

/// How the depth of drafts is ruled; names and ranges of 11 §18.
struct DepthParams {
    bool adaptive = true;
    std::string controller = "profit";  // profit fringe
    double fringe_min = 0.30;
    double fringe_max = 0.75;
    std::int32_t fringe_window = 4;
    std::int32_t min_reach = 8;
    std::int32_t off_dwell = 2;
    std::int32_t probe_interval = 32;
    double probe_fraction = 0.25;
    std::int32_t explore_interval = 64;
    double profit_min = 0.05;
    double raise = 0.02;
    double lower = 0.01;
    double ewma = 0.20;
    std::int32_t min_samples = 3;
    std::int32_t warmup = 4;
    std::int32_t baseline_interval = 256;
};

/// Tokens of the pattern looked for, tokens drafted, and hits that an entry needs.
struct NgramLengths {
    std::int32_t n = 12;
    std::int32_t m = 48;
    std::int32_t min_hits = 1;
};

struct NgramModLengths {
    std::int32_t match = 24;
    std::int32_t min = 48;
    std::int32_t max = 64;
};

/// The separate drafter; fields that are not set are as the target's (11 §5.1).
struct DraftModelParams {
    std::string path;
    std::int32_t n_gpu_layers = -1;  // negative: all
    std::vector<std::string> devices;
    std::string cache_type_k = "f16";
    std::string cache_type_v = "f16";
    std::int32_t n_threads = -1;
    std::int32_t n_threads_batch = -1;
};

/// Tokens that `ngram-cache` drafts at most, which no flag says.
inline constexpr std::int32_t longest_cache_draft = 8;

struct SpeculationParams {
    /// Types in the order of asking, as they were asked for; empty: none.
    std::vector<std::string> types;
    DraftModelParams model;
    std::int32_t n_max = 3;
    std::int32_t n_min = 0;
    float p_min = 0.0F;
    /// Tokens of side chains for each draft, 0: drafts have none; tokens of a position that are looked at for
    /// them, sequences that all slots share for them, and least probability (11 §12).
    std::int32_t branch_budget = 0;
    std::int32_t topk = 1;
    std::int32_t branch_seqs = 8;
    float p_split = 0.10F;
    /// Temperature of the drafter; negative: the request's in mode `rejection`, else 0 (11 §5.5).
    float draft_temperature = -1.0F;
    std::string verify = "rejection";      // exact rejection match-first
    std::string reduced = "auto";          // auto off host device
    std::string reduced_drafters = "all";  // all block
    /// Whether an active grammar suspends drafting (10 §23.6).
    bool grammar_blocks = false;
    /// Tokens that a running state can step back by itself (11 §13.4); negative: as many as models draft, at
    /// most 8.
    std::int32_t rs_snapshots = -1;
    /// A type that can't run fails the load (11 §3.5).
    bool strict = false;
    NgramLengths simple;
    NgramLengths map_k;
    NgramLengths map_k4v;
    NgramModLengths mod;
    std::string lookup_static;   // file; empty: none
    std::string lookup_dynamic;  // file; empty: none
    DepthParams depth;
};

/// What one request changes (11 §18.2).
struct SpeculationRequest {
    std::optional<std::string> type;
    std::optional<std::int32_t> n_max;
    std::optional<std::int32_t> n_min;
    std::optional<float> p_min;
    std::optional<bool> adaptive;
    std::optional<std::string> controller;
};

/// 11 §19.3; counts of tokens.
struct LoopGuardParams {
    std::string mode = "off";  // off stop force-close
    std::int32_t min_reasoning_tokens = 512;
    std::int32_t window_tokens = 384;
    std::int32_t max_period = 96;
    std::int32_t min_repeated_coverage = 192;
    std::int32_t check_interval = 32;
    std::int32_t interventions_max = 1;
};

/// Tokens of the longest draft that the types which were asked for can make; 0: none does.
std::int32_t longest_draft(const SpeculationParams& params);

/// Copies of a running state to ask a context for, each of them one token older than the one before; 0: none
/// (11 §13.4).
std::int32_t wanted_snapshots(const SpeculationParams& params);
/// Whether a type that was asked for can say what else might come.
bool makes_side_chains(const SpeculationParams& params);

/// Every violation of 11 §18, and of 11 §19.2, in words that name flag, value and range; empty when all is
/// well.
std::vector<std::string> problems_of(const SpeculationParams& params);
std::vector<std::string> problems_of(const LoopGuardParams& params);

}  // namespace paddock
