// Which drafts are judged by the best tokens of their rows, and what is told of it (11 §11).
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "core/speculation/reduced_plan.h"
#include "core/speculation/reduced_route.h"
#include "core/speculation/reduced_window.h"
#include "running_engine.h"

using namespace paddock;
using namespace paddock::testing;

namespace {

SamplingParams top_k(std::int32_t k, float temperature = 0.7F) {
    SamplingParams params;
    params.top_k = k;
    params.temperature = temperature;
    return params;
}

SamplingParams greedy() { return top_k(40, 0.0F); }

template <typename Change>
std::string reason_with(Change change) {
    SamplingParams params = greedy();
    change(params);
    const ReducedPlan plan = plan_reduced({.sampling = params});
    CHECK_FALSE(plan.is_forbidden);
    CHECK(plan.k == (plan.is_on ? plan.k : 1));
    return std::string(plan.reason);
}

struct Admission {
    std::string reason;
    bool is_lean = false;
};

Admission admitted(std::vector<std::int32_t> rows, std::int32_t n_rows, ReducedRows slot = {}) {
    ReducedWindow window(n_rows);
    slot.k = slot.k == 0 ? 1 : slot.k;
    slot.is_enough = true;
    slot.rows = rows;
    slot.n_drafted = slot.n_drafted == 0 ? static_cast<std::int32_t>(rows.size()) - 1 : slot.n_drafted;
    const std::string reason(window.admit(slot));
    return {.reason = reason, .is_lean = window.is_lean()};
}

/// A text that repeats itself, so that drafts from it are mostly right.
std::optional<Token> repeating(const std::vector<Token>& tokens) {
    constexpr std::size_t period = 6;
    if (tokens.size() < period || tokens.size() % 19 == 0) {
        return std::nullopt;
    }
    return tokens[tokens.size() - period];
}

FakeHostOptions repeating_model() {
    FakeHostOptions options;
    options.context.next = repeating;
    return options;
}

EngineParams drafting(const std::string& reduced = "auto", const std::string& drafters = "all") {
    EngineParams params;
    params.speculation.types = {"ngram-simple"};
    params.speculation.simple = {.n = 3, .m = 8, .min_hits = 1};
    params.speculation.depth.adaptive = false;
    params.speculation.reduced = reduced;
    params.speculation.reduced_drafters = drafters;
    return params;
}

Task asked(const SamplingParams& sampling) {
    Task task = completion(prompt_of(12), 60);
    task.params.sampling = sampling;
    return task;
}

struct Run {
    ReducedReport told;
    std::vector<Token> tokens;
    std::map<std::string, std::int64_t> counted;
    std::int32_t n_whole = 0;
    std::int64_t n_drafts = 0;
};

Run run_with(EngineParams params, const SamplingParams& sampling) {
    RunningEngine running(repeating_model(), std::move(params));
    const Result result = running.run_one(asked(sampling));
    while (running.engine->snapshot()->n_processing > 0) {
    }
    Run run{.told = result.speculation.reduced,
            .tokens = result.tokens,
            .counted = running.engine->snapshot()->totals.speculation.reduced,
            .n_whole = 0,
            .n_drafts = result.speculation.drafts};
    running.engine.reset();
    run.n_whole = running.samplers->back()->n_whole_choices;
    return run;
}

}  // namespace

TEST_CASE("11 §22 vector 2: plans") {
    const auto plan = [](const ReducedCase& of) { return plan_reduced(of); };
    const SamplingParams neutral = greedy();
    CHECK(plan({.sampling = neutral}).is_on);
    CHECK(plan({.sampling = neutral}).k == 1);
    CHECK(plan({.sampling = neutral}).reason == "greedy");
    const SamplingParams forty = top_k(40);
    CHECK(plan({.sampling = forty}).is_on);
    CHECK(plan({.sampling = forty}).k == 40);
    CHECK(plan({.sampling = forty}).reason == "top-k");
    CHECK(plan_reduced({.sampling = top_k(64)}).k == 64);
    CHECK(plan_reduced({.sampling = top_k(65)}).reason == "top-k-too-large");
    CHECK(plan_reduced({.sampling = top_k(0)}).reason == "unbounded-top-k");
    CHECK(reason_with([](auto& p) { p.repeat_penalty = 1.1F; }) == "penalties");
    SamplingParams with_grammar = greedy();
    with_grammar.grammar = "root ::= \"a\"";
    CHECK(plan({.sampling = with_grammar, .is_for_block_drafters = true}).reason == "grammar");
    const ReducedPlan policy = plan({.sampling = neutral, .is_for_block_drafters = true});
    CHECK(policy.reason == "not-dflash");
    CHECK(policy.is_forbidden);
    CHECK_FALSE(policy.is_on);
}

TEST_CASE("11 §11.1: what the draft is comes before what the request says") {
    SamplingParams odd = greedy();
    odd.mirostat = 1;
    CHECK(plan_reduced({.sampling = odd, .is_disabled = true}).reason == "disabled");
    CHECK(plan_reduced({.sampling = odd, .is_disabled = true}).is_forbidden);
    CHECK(plan_reduced({.sampling = odd, .mode = VerifyMode::rejection, .has_side_chains = true}).reason ==
          "tree");
    CHECK(plan_reduced({.sampling = odd, .n_probs = 3, .mode = VerifyMode::rejection}).reason == "rejection");
    CHECK(plan_reduced({.sampling = odd, .mode = VerifyMode::match_first}).reason == "rejection");
    CHECK(plan_reduced({.sampling = odd, .n_probs = 3}).reason == "prob-reporting");
}

TEST_CASE("11 §11.1: each filter that needs the whole row has its reason") {
    CHECK(reason_with([](auto& p) { p.grammar_lazy = true; }) == "grammar");
    CHECK(reason_with([](auto& p) { p.grammar_triggers.resize(1); }) == "grammar");
    CHECK(reason_with([](auto& p) { p.logit_bias = {{3, 1.0F}}; }) == "logit-bias");
    CHECK(reason_with([](auto& p) { p.ignore_eos = true; }) == "logit-bias");
    CHECK(reason_with([](auto& p) { p.frequency_penalty = 0.1F; }) == "penalties");
    CHECK(reason_with([](auto& p) { p.presence_penalty = -0.1F; }) == "penalties");
    CHECK(reason_with([](auto& p) { p.dry_multiplier = 0.8F; }) == "dry");
    CHECK(reason_with([](auto& p) { p.top_n_sigma = 0.0F; }) == "top-n-sigma");
    CHECK(reason_with([](auto& p) { p.xtc_probability = 0.1F; }) == "xtc");
    CHECK(reason_with([](auto& p) { p.mirostat = 2; }) == "mirostat");
    CHECK(reason_with([](auto& p) { p.adaptive_target = 0.0F; }) == "adaptive");
    CHECK(reason_with([](auto& p) { p.dynatemp_range = 0.1F; }) == "dynamic-temp");
    CHECK(reason_with([](auto& p) { p.reasoning.budget_tokens = 0; }) == "finite-reasoning-budget");
    CHECK(reason_with([](auto& p) {
              p.dry_multiplier = 0.8F;
              p.dry_penalty_last_n = 0;
          }) == "greedy");
}

TEST_CASE("11 §11.1: top-k has to come first") {
    SamplingParams params = top_k(40);
    params.samplers = {"temperature", "top_p"};
    CHECK(plan_reduced({.sampling = params}).reason == "unbounded-top-k");
    for (const std::string earlier : {"top_p", "min_p", "typ_p"}) {
        params.samplers = {earlier, "top_k"};
        CHECK(plan_reduced({.sampling = params}).reason == "sampler-order");
        params.samplers = {"top_k", earlier};
        CHECK(plan_reduced({.sampling = params}).reason == "top-k");
    }
}

TEST_CASE("11 §22 vector 3: windows") {
    const std::vector<std::int32_t> rows{0, 1, 2, 3};
    CHECK(admitted(rows, 4).reason == "eligible");
    CHECK(admitted(rows, 4).is_lean);
    CHECK(admitted(rows, 3).reason == "spec-index-outside-view");
    CHECK_FALSE(admitted(rows, 3).is_lean);
    CHECK(admitted(rows, 5).reason == "eligible");
    CHECK_FALSE(admitted(rows, 5).is_lean);
    CHECK(admitted({0, 1, 1, 3}, 4).reason == "duplicate-index");
    CHECK(admitted(rows, 0).reason == "empty-view");
    ReducedWindow window(8);
    const std::vector<std::int32_t> others{4, 5, 6, 7};
    CHECK(window.admit({.k = 1, .is_enough = true, .rows = rows, .n_drafted = 3}) == view_reason::eligible);
    CHECK_FALSE(window.is_lean());
    CHECK(window.admit({.k = 1, .is_enough = true, .rows = others, .n_drafted = 3}) == view_reason::eligible);
    CHECK(window.is_lean());
}

TEST_CASE("11 §11.2: the first thing against a slot is the reason") {
    const std::vector<std::int32_t> rows{0, 1, 9};
    ReducedWindow window(4);
    ReducedRows slot{.k = 0, .is_reasoning = true, .is_enough = false, .rows = rows, .n_drafted = 3};
    CHECK(window.admit(slot) == "empty-view");
    slot.k = 5;
    CHECK(window.admit(slot) == "reasoning-active");
    slot.is_reasoning = false;
    CHECK(window.admit(slot) == "sampler");
    slot.is_enough = true;
    CHECK(window.admit(slot) == "spec-index-count");
    slot.n_drafted = 2;
    CHECK(window.admit(slot) == "spec-index-outside-view");
    const std::vector<std::int32_t> negative{-1};
    CHECK(window.admit({.k = 1, .is_enough = true, .rows = negative, .n_drafted = 0}) ==
          "spec-index-outside-view");
}

TEST_CASE("a slot that is refused leaves its rows to others") {
    ReducedWindow window(3);
    const std::vector<std::int32_t> wrong{0, 1, 3};
    const std::vector<std::int32_t> right{0, 1, 2};
    CHECK(window.admit({.k = 1, .is_enough = true, .rows = wrong, .n_drafted = 2}) ==
          "spec-index-outside-view");
    CHECK(window.admit({.k = 1, .is_enough = true, .rows = right, .n_drafted = 2}) == view_reason::eligible);
}

TEST_CASE("11 §22 vector 39: without several outputs a sequence the device is no way") {
    ContextFacts facts;
    CHECK(reduced_route("device", facts).reason == "backend-sampler-refused");
    facts.backend_sampler = true;
    CHECK(reduced_route("device", facts).path == "host");
    CHECK(reduced_route("device", facts).reason == "backend-one-output");
    CHECK(reduced_route("auto", facts).path == "host");
    CHECK(reduced_route("auto", facts).reason.empty());
    CHECK(reduced_route("host", facts).path == "host");
    CHECK(reduced_route("off", facts).path == "off");
}

TEST_CASE("the device that can't be used is told, and warned of") {
    RunningEngine running(repeating_model(), drafting("device"));
    CHECK(running.has_line(2, "--spec-reduced device does not run, host does: backend-sampler-refused"));
    CHECK(running.engine->speculation().reduced_path == "host");
    CHECK(running.engine->speculation().reduced_reason == "backend-sampler-refused");
}

TEST_CASE("drafts are judged by the best tokens where the request allows it") {
    const Run run = run_with(drafting(), greedy());
    CHECK(run.n_drafts > 2);
    CHECK(run.told.path == "host");
    CHECK(run.told.reason == "greedy");
    CHECK(run.told.view_reason == "eligible");
    CHECK(run.told.k == 1);
    CHECK(run.n_whole == 0);
    CHECK(run.counted == std::map<std::string, std::int64_t>{{"greedy", run.n_drafts}});
    CHECK(run_with(drafting(), top_k(40)).told.k == 40);
}

TEST_CASE("a request that needs whole rows says so") {
    SamplingParams penalised = greedy();
    penalised.repeat_penalty = 1.1F;
    const Run run = run_with(drafting(), penalised);
    CHECK(run.told.reason == "penalties");
    CHECK(run.told.view_reason.empty());
    CHECK(run.counted == std::map<std::string, std::int64_t>{{"penalties", run.n_drafts}});
}

TEST_CASE("reasoning is judged by whole rows, and counts as such") {
    SamplingParams reasoning = greedy();
    reasoning.reasoning.end_tags = {"z"};
    reasoning.reasoning.starts_open = true;
    const Run run = run_with(drafting(), reasoning);
    CHECK(run.told.reason == "greedy");
    CHECK(run.told.view_reason == "reasoning-active");
    CHECK(run.counted == std::map<std::string, std::int64_t>{{"reasoning-active", run.n_drafts}});
}

TEST_CASE("what the command line rules out looks at whole rows, and only there") {
    const Run reduced = run_with(drafting(), greedy());
    for (const Run& run :
         {run_with(drafting("off"), greedy()), run_with(drafting("host", "block"), greedy())}) {
        CHECK(run.tokens == reduced.tokens);
        CHECK(run.n_drafts == reduced.n_drafts);
        CHECK(run.n_whole > 0);
        CHECK(run.n_whole < static_cast<std::int32_t>(run.tokens.size()));
    }
    CHECK(run_with(drafting("off"), greedy()).told.path == "off");
    CHECK(run_with(drafting("off"), greedy()).told.reason == "disabled");
    CHECK(run_with(drafting("host", "block"), greedy()).told.reason == "not-dflash");
}

TEST_CASE("a window with rows of others covers not all by the best tokens") {
    RunningEngine running(repeating_model(), drafting());
    Task plain = completion(prompt_of(9, 14), 60);
    plain.params.speculation.type = "none";
    std::vector<Task> tasks{asked(greedy()), std::move(plain)};
    tasks.back().index = 1;
    const std::vector<Result> results = running.run(std::move(tasks));
    CHECK(results.front().speculation.reduced.reason == "greedy");
    CHECK(results.front().speculation.reduced.view_reason == "coverage");
}
