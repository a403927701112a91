#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/speculation/request_check.h"
#include "core/speculation/speculation_params.h"

using namespace paddock;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <typename Params>
using Change = std::function<void(Params&)>;

template <typename Params>
std::vector<std::string> problems_with(const Change<Params>& change) {
    Params params;
    change(params);
    return problems_of(params);
}

/// Of a change that breaks one rule.
template <typename Params>
std::string problem_with(const Change<Params>& change) {
    const auto problems = problems_with(change);
    REQUIRE(problems.size() == 1);
    return problems.front();
}

bool names(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<std::string> request_problems(const Change<SpeculationRequest>& change,
                                          const SpeculationParams& served = {}) {
    SpeculationRequest request;
    change(request);
    return problems_of(request, served);
}

/// A flag with values at the ends of its range, and values outside.
template <typename Params, typename Value>
struct Limits {
    std::string flag;
    std::function<Value&(Params&)> field;
    std::vector<Value> good;
    std::vector<Value> bad;
};

template <typename Params, typename Value>
void check(const std::vector<Limits<Params, Value>>& table) {
    for (const auto& limits : table) {
        CAPTURE(limits.flag);
        for (const Value value : limits.good) {
            CAPTURE(value);
            CHECK(problems_with<Params>([&](Params& params) { limits.field(params) = value; }).empty());
        }
        for (const Value value : limits.bad) {
            CAPTURE(value);
            const auto problems =
                problems_with<Params>([&](Params& params) { limits.field(params) = value; });
            REQUIRE_FALSE(problems.empty());
            CHECK(problems.front().starts_with(limits.flag));
        }
    }
}

}  // namespace

TEST_CASE("11 §18, §19.3: the defaults are valid") {
    CHECK(problems_of(SpeculationParams{}).empty());
    CHECK(problems_of(LoopGuardParams{}).empty());
}

TEST_CASE("11 §18: whole numbers have their ranges") {
    using P = SpeculationParams;
    check<P, std::int32_t>({
        {"--spec-dm-fringe-window", [](P& p) -> auto& { return p.depth.fringe_window; }, {1, 64}, {0, 65}},
        {"--spec-dm-min-reach", [](P& p) -> auto& { return p.depth.min_reach; }, {1, 64}, {0, 65}},
        {"--spec-dm-off-dwell", [](P& p) -> auto& { return p.depth.off_dwell; }, {1, 9999}, {0, -1}},
        {"--spec-dm-probe-interval", [](P& p) -> auto& { return p.depth.probe_interval; }, {1, 9999}, {0}},
        {"--spec-dm-explore-interval", [](P& p) -> auto& { return p.depth.explore_interval; }, {1}, {0}},
        {"--spec-dm-profit-min-samples", [](P& p) -> auto& { return p.depth.min_samples; }, {1, 64}, {0, 65}},
        {"--spec-dm-profit-warmup", [](P& p) -> auto& { return p.depth.warmup; }, {0, 64}, {-1, 65}},
        {"--spec-dm-profit-baseline-interval",
         [](P& p) -> auto& { return p.depth.baseline_interval; },
         {0, 4096},
         {-1, 4097}},
        {"--spec-draft-n-max", [](P& p) -> auto& { return p.n_max; }, {1, 64}, {0, 65}},
        {"--spec-draft-n-min", [](P& p) -> auto& { return p.n_min; }, {0, 3}, {-1, 4}},
        {"--spec-branch-budget", [](P& p) -> auto& { return p.branch_budget; }, {0, 64}, {-1, 65}},
        {"--spec-draft-topk", [](P& p) -> auto& { return p.topk; }, {1, 10}, {0, 11}},
        {"--spec-branch-seqs", [](P& p) -> auto& { return p.branch_seqs; }, {1, 32}, {0, 33}},
        {"--spec-ngram-simple-size-n", [](P& p) -> auto& { return p.simple.n; }, {1, 1024}, {0, 1025}},
        {"--spec-ngram-map-k-size-m", [](P& p) -> auto& { return p.map_k.m; }, {1, 1024}, {0, 1025}},
        {"--spec-ngram-map-k4v-min-hits", [](P& p) -> auto& { return p.map_k4v.min_hits; }, {1, 99}, {0}},
        {"--spec-ngram-mod-n-match", [](P& p) -> auto& { return p.mod.match; }, {1, 1024}, {0, 1025}},
        {"--spec-ngram-mod-n-max", [](P& p) -> auto& { return p.mod.max; }, {48, 1024}, {0, 1025}},
        {"--spec-ngram-mod-n-min", [](P& p) -> auto& { return p.mod.min; }, {0, 64}, {-1, 65}},
    });
}

TEST_CASE("11 §18: shares have their ranges") {
    using P = SpeculationParams;
    check<P, double>({
        {"--spec-dm-probe-fraction",
         [](P& p) -> auto& { return p.depth.probe_fraction; },
         {0.01, 1},
         {0, 2, nan}},
        {"--spec-dm-profit-min",
         [](P& p) -> auto& { return p.depth.profit_min; },
         {0, 0.5},
         {-0.1, 0.51, nan}},
        {"--spec-dm-profit-raise", [](P& p) -> auto& { return p.depth.raise; }, {0, 1}, {-0.1, 1.1, nan}},
        {"--spec-dm-profit-lower", [](P& p) -> auto& { return p.depth.lower; }, {0, 1}, {-0.1, 1.1, nan}},
        {"--spec-dm-profit-ewma", [](P& p) -> auto& { return p.depth.ewma; }, {0.01, 1}, {0, 1.1, nan}},
    });
    check<P, float>({
        {"--spec-draft-p-min",
         [](P& p) -> auto& { return p.p_min; },
         {0, 1},
         {-0.1F, 1.1F, static_cast<float>(nan)}},
        {"--spec-draft-p-split",
         [](P& p) -> auto& { return p.p_split; },
         {0, 1},
         {-0.1F, 1.1F, static_cast<float>(nan)}},
        {"--spec-draft-temp",
         [](P& p) -> auto& { return p.draft_temperature; },
         {-1, 0, 3},
         {static_cast<float>(nan)}},
    });
}

TEST_CASE("11 §18: words have their lists") {
    CHECK(problem_with<SpeculationParams>([](auto& p) { p.depth.controller = "luck"; }) ==
          "--spec-dm-controller is 'luck'; it has to be one of profit, fringe");
    CHECK(names(problem_with<SpeculationParams>([](auto& p) { p.verify = "never"; }),
                "--spec-verify is 'never'"));
    CHECK(problem_with<SpeculationParams>([](auto& p) { p.reduced = "gpu"; }) ==
          "--spec-reduced is 'gpu'; it has to be one of auto, off, host, device");
    CHECK(problem_with<SpeculationParams>([](auto& p) { p.reduced_drafters = ""; }) ==
          "--spec-reduced-drafters is ''; it has to be one of all, block");
}

TEST_CASE("11 §18.1: ranges hold when adaptive depth is off, too") {
    CHECK_FALSE(problems_with<SpeculationParams>([](auto& p) {
                    p.depth.adaptive = false;
                    p.depth.off_dwell = 0;
                }).empty());
}

TEST_CASE("11 §18.1: a message names flag, value and range") {
    CHECK(problem_with<SpeculationParams>([](auto& p) { p.depth.ewma = 1.5; }) ==
          "--spec-dm-profit-ewma is 1.5; it has to be from 0.01 to 1");
}

TEST_CASE("11 §18.1: the fringe pair names both flags") {
    for (const auto& [least, most] : {std::pair(0.8, 0.8), {-0.1, 0.5}, {0.5, 1.1}, {nan, 0.5}, {0.1, nan}}) {
        const std::string problem = problem_with<SpeculationParams>([&](auto& p) {
            p.depth.fringe_min = least;
            p.depth.fringe_max = most;
        });
        CHECK(names(problem, "--spec-dm-fringe-min"));
        CHECK(names(problem, "--spec-dm-fringe-max"));
    }
}

TEST_CASE("11 §18.1: every violation is told") {
    CHECK(problems_with<SpeculationParams>([](auto& p) {
              p.n_max = 0;
              p.n_min = 0;
              p.verify = "";
              p.depth.raise = 2;
          }).size() >= 3);
}

TEST_CASE("11 §18.2: a request that changes nothing is valid") {
    CHECK(problems_of(SpeculationRequest{}, SpeculationParams{}).empty());
}

TEST_CASE("11 §18.2: a request may not draft more than the server") {
    CHECK(request_problems([](auto& request) { request.n_max = 3; }).empty());
    CHECK(request_problems([](auto& request) { request.n_max = 4; }) ==
          std::vector<std::string>{"speculative.n_max is 4; it has to be from 1 to 3"});
    CHECK_FALSE(request_problems([](auto& request) { request.n_max = 0; }).empty());
}

TEST_CASE("11 §18.2: a least length fits the longest one that is in force") {
    CHECK(request_problems([](auto& request) { request.n_min = 3; }).empty());
    CHECK_FALSE(request_problems([](auto& request) { request.n_min = -1; }).empty());
    CHECK_FALSE(request_problems([](auto& request) {
                    request.n_max = 2;
                    request.n_min = 3;
                }).empty());
    SpeculationParams served;
    served.n_min = 2;
    CHECK_FALSE(request_problems([](auto& request) { request.n_max = 1; }, served).empty());
}

TEST_CASE("11 §18.2: probability and controller of a request have the ranges of the flags") {
    CHECK(request_problems([](auto& request) { request.p_min = 1.0F; }).empty());
    CHECK_FALSE(request_problems([](auto& request) { request.p_min = 1.5F; }).empty());
    CHECK(request_problems([](auto& request) { request.controller = "fringe"; }).empty());
    CHECK_FALSE(request_problems([](auto& request) { request.controller = "luck"; }).empty());
}

TEST_CASE("11 §19.2, vector 31: a window holds three of the longest period") {
    const auto with_period = [](std::int32_t period) {
        return problems_of(
            LoopGuardParams{.window_tokens = 100, .max_period = period, .min_repeated_coverage = 100});
    };
    CHECK(with_period(33).empty());
    REQUIRE(with_period(34).size() == 1);
    CHECK(names(with_period(34).front(), "--reasoning-loop-max-period"));
    CHECK(names(with_period(34).front(), "34; it has to be at most 33"));
}

TEST_CASE("11 §19.2, vector 31: a window holds the coverage") {
    const auto problems =
        problems_of(LoopGuardParams{.window_tokens = 100, .max_period = 33, .min_repeated_coverage = 101});
    REQUIRE(problems.size() == 1);
    CHECK(names(problems.front(), "--reasoning-loop-window"));
    CHECK(names(problems.front(), "100; it has to be at least 101"));
}

TEST_CASE("11 §19.2, vector 31: the least number of tokens covers the coverage") {
    const auto problems = problems_of(LoopGuardParams{
        .min_reasoning_tokens = 50, .window_tokens = 100, .max_period = 33, .min_repeated_coverage = 60});
    REQUIRE(problems.size() == 1);
    CHECK(names(problems.front(), "--reasoning-loop-min-tokens"));
}

TEST_CASE("11 §19.2: numbers of the guard have their ranges, whatever its mode") {
    using P = LoopGuardParams;
    check<P, std::int32_t>({
        {"--reasoning-loop-min-tokens",
         [](P& p) -> auto& { return p.min_reasoning_tokens; },
         {192, 99999},
         {-1, 0, 191}},
        {"--reasoning-loop-window", [](P& p) -> auto& { return p.window_tokens; }, {288, 99999}, {0, -1}},
        {"--reasoning-loop-max-period", [](P& p) -> auto& { return p.max_period; }, {1, 128}, {0, 129}},
        {"--reasoning-loop-min-coverage",
         [](P& p) -> auto& { return p.min_repeated_coverage; },
         {1, 384},
         {0}},
        {"--reasoning-loop-check-interval", [](P& p) -> auto& { return p.check_interval; }, {1}, {0, -5}},
        {"--reasoning-loop-interventions", [](P& p) -> auto& { return p.interventions_max; }, {0}, {-1}},
    });
}

TEST_CASE("11 §19.3: the mode of the guard is one of three") {
    const std::string problem = problem_with<LoopGuardParams>([](auto& p) { p.mode = "shout"; });
    CHECK(names(problem, "--reasoning-loop-guard"));
    CHECK(names(problem, "'shout'; it has to be one of off, stop, force-close"));
}

TEST_CASE("11 §19.2: a message names the field of a request, too") {
    CHECK(names(problem_with<LoopGuardParams>([](auto& p) { p.check_interval = 0; }),
                "reasoning_loop_guard.check_interval"));
}

TEST_CASE("the longest draft is that of the types asked for") {
    SpeculationParams params;
    CHECK(longest_draft(params) == 0);
    params.types = {"draft-mtp"};
    CHECK(longest_draft(params) == 0);
    params.types = {"draft-simple"};
    params.n_max = 5;
    CHECK(longest_draft(params) == 5);
    params.types = {"draft-simple", "ngram-mod", "ngram-cache"};
    CHECK(longest_draft(params) == 64);
}

TEST_CASE("11 §13.4: copies of a running state are made for drafts of a model, and no more than that") {
    SpeculationParams params;
    CHECK(wanted_snapshots(params) == 0);
    params.types = {"ngram-mod"};
    CHECK(wanted_snapshots(params) == 0);
    params.types = {"ngram-mod", "draft-simple"};
    CHECK(wanted_snapshots(params) == 3);
    params.n_max = 16;
    CHECK(wanted_snapshots(params) == 8);
    params.rs_snapshots = 0;
    CHECK(wanted_snapshots(params) == 0);
    params.rs_snapshots = 16;
    CHECK(wanted_snapshots(params) == 16);
    params.types.clear();
    CHECK(wanted_snapshots(params) == 0);
    params.rs_snapshots = 65;
    CHECK(problems_of(params) ==
          std::vector<std::string>{"--spec-rs-snapshots is 65; it has to be 'auto', or from 0 to 64"});
}
