// Side chains in a running engine: the text is that of plain decoding, and memory is what the list says.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/speculation/ngram_map.h"
#include "ngram_texts.h"
#include "running_engine.h"

using namespace paddock;
using namespace paddock::testing;

namespace {

constexpr std::int32_t n_branch_ids = 6;

/// A text that nobody can know without all of memory at every fifth token.
std::optional<Token> told(const std::vector<Token>& tokens) {
    const auto n = static_cast<std::int32_t>(tokens.size());
    return n % 5 == 0 ? std::nullopt : std::optional<Token>(10 + (7 * tokens.back() + 3 * n) % 40);
}

FakeContextOptions target() {
    FakeContextOptions options;
    options.next = told;
    options.facts.kv_unified = true;
    options.facts.n_ctx = 512;
    options.facts.n_branch_ids = n_branch_ids;
    return options;
}

/// Its best guess is often wrong; the next best one is right then.
FakeContextOptions drafter() {
    FakeContextOptions options;
    options.next = [](const std::vector<Token>& tokens) {
        const std::optional<Token> right = told(tokens);
        return right && tokens.back() % 3 == 0 ? std::optional<Token>(*right + 1) : right;
    };
    options.second = [](const std::vector<Token>& tokens) { return told(tokens); };
    options.facts.kv_unified = true;
    return options;
}

FakeHostOptions model(FakeContextOptions context = target()) {
    FakeHostOptions options;
    options.context = std::move(context);
    options.drafter = drafter();
    return options;
}

EngineParams branching(std::int32_t budget = 8) {
    EngineParams params;
    params.speculation.types = {"draft-simple"};
    params.speculation.n_max = 5;
    params.speculation.branch_budget = budget;
    params.speculation.topk = 2;
    params.speculation.depth.adaptive = false;
    return params;
}

std::vector<std::vector<Token>> texts_of(FakeHostOptions host, EngineParams params,
                                         std::int32_t n_tasks = 3) {
    RunningEngine running(std::move(host), std::move(params));
    std::vector<Task> tasks;
    for (std::int32_t i = 0; i < n_tasks; ++i) {
        tasks.push_back(completion(prompt_of(12 + i, 10 + i), 60));
        tasks.back().index = i;
    }
    std::vector<std::vector<Token>> texts;
    for (const Result& result : running.run(std::move(tasks))) {
        CHECK(result.kind == ResultKind::final);
        texts.push_back(result.tokens);
    }
    return texts;
}

bool is_branch(SequenceId sequence) { return sequence >= 4; }

}  // namespace

TEST_CASE("drafts with side chains give the text of plain decoding") {
    const auto plain = texts_of(model(), {});
    CHECK(texts_of(model(), branching()) == plain);
    CHECK(texts_of(model(), branching(1)) == plain);
    EngineParams adaptive = branching();
    adaptive.speculation.depth.adaptive = true;
    CHECK(texts_of(model(), adaptive) == plain);
}

TEST_CASE("side chains save decodes, and are told") {
    const auto run = [](std::int32_t budget) {
        RunningEngine running(model(), branching(budget));
        const Result result = running.run_one(completion(prompt_of(12), 60));
        while (running.engine->snapshot()->n_processing > 0) {
        }
        CHECK(running.engine->snapshot()->totals.speculation.tree_drafts == result.speculation.tree_drafts);
        return result.speculation;
    };
    const SpeculationReport flat = run(0);
    const SpeculationReport tree = run(8);
    CHECK(flat.tree_drafts == 0);
    CHECK(flat.tree_reason.empty());
    CHECK(tree.tree_drafts > 0);
    CHECK(tree.drafts < flat.drafts);
    CHECK(tree.accepted > flat.accepted);
    CHECK(tree.verify_mode == "exact");
    CHECK(tree.rollbacks.trim > 0);
    CHECK(tree.rollbacks.refill == 0);
    CHECK(tree.drafted_by_position.front() == tree.drafts);
}

TEST_CASE("branches hold something only while a tree is decoded") {
    RunningEngine running(model(), branching());
    running.run_one(completion(prompt_of(12), 60));
    std::set<std::string> held;
    std::size_t n_forks = 0;
    for (const std::string& move : running.journal->moves()) {
        if (move.starts_with("copy 0 ")) {
            CHECK(held.insert(move.substr(7)).second);
            ++n_forks;
        } else if (move.starts_with("remove ") && move.ends_with("[0,end)")) {
            held.erase(move.substr(7, move.find(' ', 7) - 7));
        }
    }
    CHECK(n_forks > 0);
    CHECK(held.empty());
}

TEST_CASE("several slots have trees in one window, and share the branches") {
    RunningEngine running(model(), branching());
    running.run({completion(prompt_of(12), 60), completion(prompt_of(12, 20), 60),
                 completion(prompt_of(12, 30), 60)});
    bool is_shared = false;
    for (const Journal::Window& window : running.journal->windows()) {
        std::set<SequenceId> branching_slots;
        std::set<SequenceId> branches;
        for (const BatchRow& row : window.rows) {
            CHECK(row.branches.size() <= n_branch_ids);
            if (!is_branch(row.sequence) && !row.branches.empty()) {
                branching_slots.insert(row.sequence);
            }
            branches.insert(row.branches.begin(), row.branches.end());
        }
        CHECK(branches.size() <= n_branch_ids);
        is_shared = is_shared || branching_slots.size() > 1;
    }
    CHECK(is_shared);
}

TEST_CASE("a tree is decoded in one window or not at all") {
    FakeContextOptions context = target();
    context.facts.n_batch = 9;
    context.facts.n_ubatch = 9;
    CHECK(texts_of(model(context), branching()) == texts_of(model(context), {}));
}

TEST_CASE("windows that fail are tried again without losing a token") {
    const std::vector<Token> plain = texts_of(model(), {}, 1).front();
    for (const std::int32_t code : {1, 2}) {
        FakeContextOptions context = target();
        for (int i = 0; i < 24; ++i) {
            context.codes.push_back(i > 4 && i % 3 == 0 ? code : 0);
        }
        CAPTURE(code);
        CHECK(texts_of(model(context), branching(), 1).front() == plain);
    }
}

TEST_CASE("a memory that is nearly full gives side chains up before requests") {
    FakeContextOptions context = target();
    context.facts.n_ctx = 76;
    context.facts.n_ctx_slot = 76;
    CHECK(texts_of(model(context), branching(), 1) == texts_of(model(context), {}, 1));
}

TEST_CASE("a memory that can't be cut is made anew, and nothing is drafted any more") {
    FakeContextOptions context = target();
    context.refuses_partial_removal = true;
    RunningEngine running(model(context), branching());
    const Result result = running.run_one(completion(prompt_of(12), 40));
    CHECK(result.speculation.rollbacks.refill == 1);
    CHECK(result.tokens == RunningEngine(model()).run_one(completion(prompt_of(12), 40)).tokens);
}

TEST_CASE("a stop string ends the text within a tree, and the list serves the next request") {
    RunningEngine plain(model());
    const std::vector<Token> whole = plain.run_one(completion(prompt_of(12), 40)).tokens;
    for (std::size_t at = 8; at < 20; ++at) {
        CAPTURE(at);
        Task task = completion(prompt_of(12), 40);
        task.params.stop = {FakeVocabulary().piece(whole[at], false)};
        RunningEngine undrafted(model());
        RunningEngine drafted(model(), branching());
        const Result expected = undrafted.run_one(task);
        const Result result = drafted.run_one(task);
        CHECK(result.tokens == expected.tokens);
        CHECK(result.stop == StopKind::word);
        std::vector<Token> longer = prompt_of(12);
        longer.insert(longer.end(), result.tokens.begin(), result.tokens.end());
        const Result next = drafted.run_one(completion(longer, 12));
        CHECK(next.n_prompt_cached == undrafted.run_one(completion(longer, 12)).n_prompt_cached);
        CHECK(next.tokens == plain.run_one(completion(longer, 12)).tokens);
    }
}

TEST_CASE("a draft ends with the budget also where it branches") {
    RunningEngine plain(model());
    RunningEngine drafted(model(), branching());
    for (std::int32_t n = 1; n < 20; ++n) {
        const Result with = drafted.run_one(completion(prompt_of(12), n));
        CHECK(with.tokens == plain.run_one(completion(prompt_of(12), n)).tokens);
        CHECK(with.n_decoded == n);
    }
}

TEST_CASE("a context shift under side chains changes nothing") {
    EngineParams params;
    params.context_shift = true;
    EngineParams with = branching();
    with.context_shift = true;
    RunningEngine plain(model(), params);
    RunningEngine drafted(model(), with);
    CHECK(drafted.run_one(completion(prompt_of(12), 300)).tokens ==
          plain.run_one(completion(prompt_of(12), 300)).tokens);
}

TEST_CASE("what keeps drafts flat has a reason") {
    FakeContextOptions context = target();
    EngineParams params = branching();
    std::string reason;
    SUBCASE("a running state") {
        context.facts.is_recurrent = true;
        context.facts.removal = Removal::full;
        reason = "tree-recurrent";
    }
    SUBCASE("memory of each slot's own") {
        context.facts.kv_unified = false;
        reason = "tree-needs-unified-kv";
    }
    SUBCASE("several positions for a token") {
        context.facts.has_multi_positions = true;
        reason = "tree-multi-position";
    }
    SUBCASE("no sequences") {
        context.facts.n_branch_ids = 0;
        reason = "tree-no-branch-ids";
    }
    SUBCASE("a drafter that says one thing only") {
        params.speculation.types = {"ngram-simple"};
        reason = "tree-single-path";
    }
    SUBCASE("nothing likely enough") {
        params.speculation.p_split = 0.9F;
        reason = "tree-single-path";
    }
    RunningEngine running(model(context), params);
    const Result result = running.run_one(completion(prompt_of(12), 40));
    CHECK(result.speculation.tree_reason == reason);
    CHECK(result.speculation.tree_drafts == 0);
    CHECK(running.engine->snapshot()->speculation.has_trees == (params.speculation.p_split > 0.5F));
    for (const Journal::Window& window : running.journal->windows()) {
        CHECK(std::ranges::none_of(window.rows, [](const BatchRow& row) { return is_branch(row.sequence); }));
    }
}

TEST_CASE("a single rank is raised to two") {
    EngineParams params = branching();
    params.speculation.topk = 1;
    RunningEngine running(model(), params);
    CHECK(running.has_line(3, "--spec-draft-topk is 1"));
    CHECK(running.run_one(completion(prompt_of(12), 40)).speculation.tree_drafts > 0);
}

TEST_CASE("side chains from the text itself give the text of plain decoding") {
    // Goes round in sixes, with a turn now and then that depends on all of memory.
    FakeContextOptions context = target();
    context.facts.n_ctx_slot = 512;
    context.next = [](const std::vector<Token>& tokens) {
        return tokens.size() < 6 || tokens.size() % 31 == 0 ? std::nullopt
                                                            : std::optional<Token>(tokens[tokens.size() - 6]);
    };
    EngineParams params = branching();
    params.speculation.types = {"ngram-map-k4v"};
    params.speculation.map_k4v = {.n = 2, .m = 4, .min_hits = 1};
    RunningEngine plain(model(context));
    RunningEngine drafted(model(context), params);
    const Result result = drafted.run_one(completion(prompt_of(12), 400));
    CHECK(result.tokens == plain.run_one(completion(prompt_of(12), 400)).tokens);
    CHECK(result.speculation.tree_drafts > 0);
}

TEST_CASE("a map of n-grams says what else followed") {
    NgramMapK4v map({.n = 3, .m = 5, .min_hits = 1}, 1);
    // Four times one way, once each of two others.
    const Tokens text = joined({{0}, keyed(10), keyed(10), keyed(10), keyed(10), keyed(20), keyed(30), key});
    const std::span<const Token> all = text;
    map.begin(0, all.first(all.size() - 1));
    DraftRequest request{.tokens = all.first(all.size() - 1), .pending = text.back(), .limit = 5};
    CHECK(map.draft({&request, 1}).front().side_chains.empty());
    request.n_ranks = 2;
    const Draft draft = map.draft({&request, 1}).front();
    CHECK(draft.tokens == run(10, 5));
    REQUIRE(draft.side_chains.size() == 2);
    CHECK(draft.side_chains[0].tokens == run(20, 5));
    CHECK(draft.side_chains[1].tokens == run(30, 5));
    CHECK(draft.side_chains[0].hang_depth == 0);
}
