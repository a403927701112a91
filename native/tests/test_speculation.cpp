// Drafting in a running engine: the text is that of plain decoding, and memory is what the list says.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/decode_state.h"
#include "running_engine.h"

using namespace paddock;
using namespace paddock::testing;

namespace {

constexpr std::int32_t period = 6;

/// A text that repeats itself for a while and then goes another way, which depends on all that memory holds:
/// drafts from the text are right at first, and wrong now and then.
std::optional<Token> repeating(const std::vector<Token>& tokens) {
    const auto n = static_cast<std::int32_t>(tokens.size());
    if (n < period || n % 19 == 0) {
        return std::nullopt;
    }
    return tokens[tokens.size() - period];
}

FakeHostOptions repeating_model() {
    FakeHostOptions options;
    options.context.next = repeating;
    return options;
}

EngineParams drafting(const std::string& type, bool adaptive = false) {
    EngineParams params;
    params.speculation.types = {type};
    params.speculation.simple = {.n = 3, .m = 8, .min_hits = 1};
    params.speculation.map_k = {.n = 3, .m = 6, .min_hits = 1};
    params.speculation.map_k4v = {.n = 3, .m = 6, .min_hits = 1};
    params.speculation.mod = {.match = 4, .min = 2, .max = 8};
    params.speculation.depth.adaptive = adaptive;
    return params;
}

std::vector<Task> some_tasks() {
    std::vector<Task> tasks;
    for (std::int32_t i = 0; i < 3; ++i) {
        tasks.push_back(completion(prompt_of(12 + i, 10 + i), 60));
        tasks.back().index = i;
    }
    return tasks;
}

std::vector<std::vector<Token>> texts_of(FakeHostOptions model, EngineParams params) {
    RunningEngine running(std::move(model), std::move(params));
    std::vector<std::vector<Token>> texts;
    for (const Result& result : running.run(some_tasks())) {
        CHECK(result.kind == ResultKind::final);
        texts.push_back(result.tokens);
    }
    return texts;
}

const std::vector<std::string> text_types{"ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod",
                                          "ngram-cache"};

}  // namespace

TEST_CASE("every drafter gives the text of plain decoding") {
    const auto plain = texts_of(repeating_model(), {});
    for (const std::string& type : text_types) {
        for (const bool adaptive : {false, true}) {
            CAPTURE(type);
            CHECK(texts_of(repeating_model(), drafting(type, adaptive)) == plain);
        }
    }
}

TEST_CASE("11 §21.3, §21.5: lines tell of each cycle, and of what a request came to") {
    RunningEngine running(repeating_model(), drafting("ngram-simple"));
    const SpeculationReport report = running.run_one(completion(prompt_of(12), 60)).speculation;
    while (running.engine->snapshot()->n_processing > 0) {
    }
    CHECK(running.has_line(log_debug, "cycle: width 1, rows "));
    CHECK(running.has_line(log_info, "(" + std::to_string(report.accepted) + " of " +
                                         std::to_string(report.drafted) + " accepted), depth 8"));
    CHECK(running.has_line(log_info, "; ngram-simple " + std::to_string(report.drafts) + " drafts, "));
    RunningEngine plain(repeating_model());
    plain.run_one(completion(prompt_of(12), 60));
    CHECK_FALSE(plain.has_line(log_debug, "cycle: "));
    CHECK_FALSE(plain.has_line(log_info, "draft acceptance"));
}

TEST_CASE("drafts are made and told") {
    RunningEngine running(repeating_model(), drafting("ngram-simple"));
    const Result result = running.run_one(completion(prompt_of(12), 60));
    const SpeculationReport& report = result.speculation;
    CHECK(report.types == std::vector<std::string>{"ngram-simple"});
    CHECK(report.active_type == "ngram-simple");
    CHECK(report.fallback_reason.empty());
    CHECK(report.drafts > 0);
    CHECK(report.accepted > 10);
    CHECK(report.accepted <= report.drafted);
    CHECK(report.drafted_by_position.size() == report.accepted_by_position.size());
    CHECK(report.drafted_by_position.front() == report.drafts);
    CHECK(report.rollbacks.trim > 0);
    while (running.engine->snapshot()->n_processing > 0) {
    }
    const auto snapshot = running.engine->snapshot();
    CHECK(snapshot->totals.speculation.drafted == report.drafted);
    CHECK(snapshot->totals.speculation.accepted == report.accepted);
    CHECK(snapshot->slots.front().speculation.drafted == report.drafted);
}

TEST_CASE("memory that can't be cut goes back by its state") {
    FakeHostOptions model = repeating_model();
    model.context.facts.is_recurrent = true;
    model.context.facts.removal = Removal::full;
    const auto plain = texts_of(model, {});
    CHECK(texts_of(model, drafting("ngram-simple")) == plain);
    RunningEngine running(model, drafting("ngram-simple"));
    const Result result = running.run_one(completion(prompt_of(12), 60));
    CHECK(result.speculation.rollbacks.redecode > 0);
    CHECK(result.speculation.rollbacks.refill == 0);
}

TEST_CASE("11 §13.4: a running state steps back by its copies, and longer drafts by decoding again") {
    FakeHostOptions model = repeating_model();
    model.context.facts.is_hybrid = true;
    model.context.facts.removal = Removal::full;
    const auto plain = texts_of(model, {});
    model.context.facts.removal = Removal::recurrent;
    for (const std::int32_t n_copies : {1, 4, 8}) {
        CAPTURE(n_copies);
        model.context.facts.n_rs_seq = n_copies;
        CHECK(texts_of(model, drafting("ngram-simple")) == plain);
        CHECK(texts_of(model, drafting("ngram-mod", true)) == plain);
        RunningEngine running(model, drafting("ngram-simple"));
        const RollbackCounts counts = running.run_one(completion(prompt_of(12), 60)).speculation.rollbacks;
        CHECK((counts.snapshot > 0) == (n_copies == 8));
        CHECK((counts.redecode > 0) == (n_copies < 8));
        CHECK(counts.trim + counts.refill == 0);
    }
}

TEST_CASE("11 §13.4: an aborted window is no decode that copies are of") {
    FakeHostOptions model = repeating_model();
    model.context.facts.is_recurrent = true;
    model.context.facts.removal = Removal::recurrent;
    model.context.facts.n_rs_seq = 8;
    const auto plain = texts_of(model, {});
    model.context.codes = {0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2};
    CHECK(texts_of(model, drafting("ngram-simple")) == plain);
}

TEST_CASE("a state that can't be written back is made anew") {
    FakeHostOptions model = repeating_model();
    model.context.facts.is_recurrent = true;
    model.context.facts.removal = Removal::full;
    const auto plain = texts_of(model, {});
    model.context.fails_to_write_state = true;
    RunningEngine running(model, drafting("ngram-simple"));
    const std::vector<Result> results = running.run({completion(prompt_of(12), 24)});
    CHECK(results.front().speculation.rollbacks.refill == 1);
    CHECK(results.front().speculation.fallback_reason == "no-rollback");
    CHECK(results.front().n_decoded == 24);
}

TEST_CASE("a state that can't be read leaves nothing drafted") {
    FakeHostOptions model = repeating_model();
    model.context.facts.is_recurrent = true;
    model.context.facts.removal = Removal::full;
    const auto plain = texts_of(model, {});
    model.context.fails_to_read_state = true;
    CHECK(texts_of(model, drafting("ngram-simple")) == plain);
}

TEST_CASE("a sliding window survives rejected drafts") {
    FakeHostOptions model = repeating_model();
    model.context.facts.n_swa = 16;
    CHECK(texts_of(model, drafting("ngram-simple")) == texts_of(model, {}));
}

TEST_CASE("a draft ends with the budget, and not behind it") {
    for (std::int32_t n = 1; n < 30; ++n) {
        RunningEngine plain(repeating_model());
        RunningEngine drafted(repeating_model(), drafting("ngram-simple"));
        const Result with = drafted.run_one(completion(prompt_of(12), n));
        CHECK(with.tokens == plain.run_one(completion(prompt_of(12), n)).tokens);
        CHECK(with.n_decoded == n);
    }
}

TEST_CASE("the list after a drafted request serves the next one") {
    for (const char* type : {"", "ngram-simple"}) {
        RunningEngine running(repeating_model(), *type == '\0' ? EngineParams{} : drafting(type));
        const Result first = running.run_one(completion(prompt_of(12), 40));
        std::vector<Token> longer = prompt_of(12);
        longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
        const Result second = running.run_one(completion(longer, 4));
        CHECK(second.n_prompt_cached == static_cast<std::int32_t>(longer.size()) - 1);
    }
}

TEST_CASE("drafts of several slots share a small batch") {
    FakeHostOptions model = repeating_model();
    model.context.facts.n_batch = 8;
    model.context.facts.n_ubatch = 8;
    CHECK(texts_of(model, drafting("ngram-simple")) == texts_of(model, {}));
}

TEST_CASE("a full memory gives drafts up before requests") {
    FakeHostOptions model = repeating_model();
    model.context.facts.n_ctx = 80;
    model.context.facts.n_ctx_slot = 80;
    model.context.facts.kv_unified = true;
    RunningEngine plain(model);
    RunningEngine drafted(model, drafting("ngram-simple"));
    CHECK(drafted.run_one(completion(prompt_of(12), 60)).tokens ==
          plain.run_one(completion(prompt_of(12), 60)).tokens);
}

TEST_CASE("failing decodes lose no drafted token and invent none") {
    const std::vector<std::int32_t> codes{0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 2, 2, 0, 0, 0, 2, 0, 0, 2};
    FakeHostOptions model = repeating_model();
    RunningEngine plain(model);
    const std::vector<Token> expected = plain.run_one(completion(prompt_of(12), 60)).tokens;
    model.context.codes.assign(codes.begin(), codes.end());
    RunningEngine drafted(model, drafting("ngram-simple"));
    const Result result = drafted.run_one(completion(prompt_of(12), 60));
    CHECK(result.tokens == expected);
}

TEST_CASE("a context shift under drafts changes nothing") {
    FakeHostOptions model = repeating_model();
    EngineParams params;
    params.context_shift = true;
    RunningEngine plain(model, params);
    EngineParams with = drafting("ngram-simple");
    with.context_shift = true;
    RunningEngine drafted(model, with);
    CHECK(drafted.run_one(completion(prompt_of(12), 300)).tokens ==
          plain.run_one(completion(prompt_of(12), 300)).tokens);
}

TEST_CASE("a type that does not run has its reason") {
    RunningEngine running(repeating_model(), drafting("draft-mtp"));
    const Result result = running.run_one(completion(prompt_of(12), 8));
    CHECK(result.speculation.types.empty());
    CHECK(result.speculation.fallback_reason == "type-not-built");
    CHECK(result.speculation.drafts == 0);
}

TEST_CASE("a request may go without drafts") {
    RunningEngine running(repeating_model(), drafting("ngram-simple"));
    Task task = completion(prompt_of(12), 40);
    task.params.speculation.type = "none";
    const Result result = running.run_one(task);
    CHECK(result.speculation.drafts == 0);
    CHECK(result.speculation.fallback_reason == "none-requested");
}
