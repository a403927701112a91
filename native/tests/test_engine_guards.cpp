// The loop guard and the tool-marker detector in a running engine.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "running_engine.h"

using namespace paddock;
using namespace paddock::testing;

namespace {

constexpr Token repeated = 20;
constexpr Token letter_y = first_letter + 'y' - 'a';

/// Finds a loop with the eighth token of a region.
LoopGuardParams small_guard(const std::string& mode) {
    return {.mode = mode,
            .min_reasoning_tokens = 8,
            .window_tokens = 12,
            .max_period = 4,
            .min_repeated_coverage = 6,
            .check_interval = 1,
            .interventions_max = 1};
}

Task guarded(const std::string& mode, std::int32_t n_predict = 100) {
    Task task = completion(prompt_of(10), n_predict);
    task.params.loop_guard = small_guard(mode);
    return task;
}

/// Its text begins within reasoning, which "zy" ends.
Task reasoning(const std::string& mode, std::int32_t n_predict = 100) {
    Task task = guarded(mode, n_predict);
    task.params.sampling.reasoning.end_tags = {"zy"};
    task.params.sampling.reasoning.starts_open = true;
    return task;
}

/// The model says one token again and again, until an end tag; then it ends.
FakeHostOptions looping() {
    FakeHostOptions options;
    options.context.next = [](const std::vector<Token>& tokens) {
        return tokens.back() == letter_y ? token_end : repeated;
    };
    return options;
}

const SpeculationTotals& totals(const std::shared_ptr<const Snapshot>& snapshot) {
    return snapshot->totals.speculation;
}

Task with_tools(bool grammar_lazy) {
    Task task = completion(prompt_of(10), 20);
    task.params.sampling.grammar = "a grammar";
    task.params.sampling.grammar_lazy = grammar_lazy;
    task.params.sampling.grammar_triggers = {{.value = "call"}};
    return task;
}

/// The model writes a raw marker with every token.
FakeHostOptions writing_markers() {
    FakeHostOptions options = looping();
    options.pieces = {{repeated, " <tool_call"}};
    return options;
}

}  // namespace

TEST_CASE("11 §19.8: a text that repeats itself is stopped") {
    RunningEngine running(looping());
    const Result result = running.run_one(guarded("stop"));
    CHECK(result.stop == StopKind::limit);
    CHECK(result.stop_detail == "loop_guard");
    CHECK_FALSE(result.truncated);
    CHECK(result.n_decoded == 8);
    CHECK(result.tokens == std::vector<Token>(8, repeated));
    CHECK(result.loop_guard.triggered);
    CHECK(result.loop_guard.action == "stop");
    CHECK(result.loop_guard.reason == "exact");
    CHECK(result.loop_guard.visible_tokens == 8);
}

TEST_CASE("11 §19.8: a stream gets all text before it is stopped") {
    RunningEngine running(looping());
    Task task = guarded("stop");
    task.params.stream = true;
    task.params.stop = {"rrrrrrrrrrrr"};
    std::string text = running.run_one(task).text;
    for (auto partial = running.streamed.rbegin(); partial != running.streamed.rend(); ++partial) {
        text = partial->text + text;
    }
    CHECK(text == "rrrrrrrr");
}

TEST_CASE("11 §19.8: visible text is stopped in the mode force-close, too") {
    RunningEngine running(looping());
    const Result result = running.run_one(guarded("force-close"));
    CHECK(result.stop_detail == "loop_guard");
    CHECK(result.loop_guard.interventions == 0);
}

TEST_CASE("11 §19.8: reasoning that repeats itself is closed, and the text goes on") {
    RunningEngine running(looping());
    const Result result = running.run_one(reasoning("force-close"));
    CHECK(result.text == "rrrrrrrrzy");
    CHECK(result.stop == StopKind::eos);
    CHECK(result.stop_detail.empty());
    CHECK(result.loop_guard.triggered);
    CHECK(result.loop_guard.action == "force-close");
    CHECK(result.loop_guard.interventions == 1);
}

TEST_CASE("11 §19.8: reasoning is stopped in the mode stop") {
    RunningEngine running(looping());
    const Result result = running.run_one(reasoning("stop"));
    CHECK(result.text == "rrrrrrrr");
    CHECK(result.stop_detail == "loop_guard");
}

TEST_CASE("11 §19.8: reasoning is stopped when no intervention is left") {
    RunningEngine running(looping());
    Task task = reasoning("force-close");
    task.params.loop_guard.interventions_max = 0;
    CHECK(running.run_one(task).stop_detail == "loop_guard");
}

TEST_CASE("11 §19.8, vector 34: an end that doesn't fit into the budget is not begun") {
    RunningEngine running(looping());
    const Result tight = running.run_one(reasoning("force-close", 9));
    CHECK(tight.stop_detail == "loop_guard");
    CHECK(tight.loop_guard.action == "stop");
    const Result fitting = running.run_one(reasoning("force-close", 10));
    CHECK(fitting.stop_detail == "token_limit");
    CHECK(fitting.text == "rrrrrrrrzy");
}

TEST_CASE("11 §19.4: forced tokens and the end belong to no region") {
    RunningEngine running(looping());
    const Result result = running.run_one(reasoning("force-close"));
    CHECK(result.n_decoded == 11);
    CHECK(result.n_reasoning_tokens == 8);
    CHECK(result.loop_guard.reasoning_tokens == 8);
    CHECK(result.loop_guard.visible_tokens == 0);
}

TEST_CASE("11 §19.4: regions are counted when the guard is off") {
    RunningEngine running(looping());
    const Result result = running.run_one(reasoning("off", 30));
    CHECK(result.stop_detail == "token_limit");
    CHECK(result.loop_guard.mode == "off");
    CHECK_FALSE(result.loop_guard.triggered);
    CHECK(result.loop_guard.reasoning_tokens == 30);
}

TEST_CASE("11 §19: text that doesn't repeat itself is left alone") {
    FakeHostOptions options;
    options.context.next = [](const std::vector<Token>& tokens) {
        return first_letter + (tokens.back() + 7) % 59;
    };
    RunningEngine running(options);
    for (const std::string mode : {"stop", "force-close"}) {
        const Result result = running.run_one(reasoning(mode));
        CHECK(result.stop_detail == "token_limit");
        CHECK_FALSE(result.loop_guard.triggered);
    }
    CHECK(totals(running.engine->snapshot()).loop_guard_actions == SpeculationTotals{}.loop_guard_actions);
}

TEST_CASE("11 §19: actions are counted by kind and region") {
    RunningEngine running(looping());
    running.run_one(guarded("stop"));
    running.run_one(guarded("force-close"));
    running.run_one(reasoning("stop"));
    running.run_one(reasoning("force-close"));
    running.run_one(reasoning("force-close"));
    const auto snapshot = running.engine->snapshot();
    CHECK(totals(snapshot).loop_guard_actions[0] == std::array<std::int64_t, 2>{2, 1});
    CHECK(totals(snapshot).loop_guard_actions[1] == std::array<std::int64_t, 2>{0, 2});
}

TEST_CASE("11 §21.1: the view of a slot keeps what the guard did") {
    RunningEngine running(looping());
    const Result result = running.run_one(guarded("stop"));
    running.run_one(completion({}, 0));
    const auto snapshot = running.engine->snapshot();
    const SlotView& view = snapshot->slots[static_cast<std::size_t>(result.id_slot)];
    CHECK(view.loop_guard.mode == "stop");
    CHECK(view.loop_guard.triggered);
    CHECK(view.loop_guard.visible_tokens == 8);
}

TEST_CASE("11 §19.11: a line tells of each loop") {
    RunningEngine running(looping());
    running.run_one(reasoning("force-close"));
    CHECK(running.has_line(3,
                           "loop in reasoning, exact, period 1, coverage 8, score 1.000000, action "
                           "force-close, 8 tokens decoded, 8 of reasoning, 0 visible"));
}

TEST_CASE("11 §19.9: reasoning without a known end is stopped, not closed") {
    RunningEngine running(looping());
    Task task = guarded("force-close");
    task.params.sampling.reasoning.start_tag = "b";
    const Result result = running.run_one(task);
    CHECK(result.loop_guard.mode == "stop");
    CHECK(running.has_line(2, "no known end"));
}

TEST_CASE("11 §19.2, 12 §5.4: a request whose guard can't be is refused, and the slot stays usable") {
    RunningEngine running(looping());
    Task task = guarded("stop");
    task.params.loop_guard.max_period = 5;
    const Result result = running.run_one(task);
    CHECK(result.kind == ResultKind::error);
    CHECK(result.error == ErrorKind::invalid_request);
    CHECK(result.text.find("reasoning_loop_guard.max_period") != std::string::npos);
    CHECK(running.run_one(guarded("stop")).kind == ResultKind::final);
}

TEST_CASE("11 §18.2: a request that wants longer drafts than the server is refused") {
    RunningEngine running(looping());
    Task task = completion(prompt_of(10));
    task.params.speculation.n_max = 9;
    const Result result = running.run_one(task);
    CHECK(result.error == ErrorKind::invalid_request);
    CHECK(result.text == "speculative.n_max is 9; it has to be from 1 to 3");
}

TEST_CASE("11 §20.4: a raw tool call under a lazy grammar suspends drafting once, with a line") {
    RunningEngine running(writing_markers());
    running.run_one(with_tools(true));
    CHECK(totals(running.engine->snapshot()).suppressions == 1);
    CHECK(running.has_line(2, "a raw tool call in visible text, drafting is suspended, 1 tokens decoded"));
}

TEST_CASE("11 §20.2: under a grammar that isn't lazy raw tool calls are none") {
    RunningEngine running(writing_markers());
    running.run_one(with_tools(false));
    CHECK(totals(running.engine->snapshot()).suppressions == 0);
}
