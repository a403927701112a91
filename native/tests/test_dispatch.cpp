// What a task that finds its slot does to the prompts of others.
#include <doctest/doctest.h>

#include "running_engine.h"

using namespace paddock;
using namespace paddock::testing;

namespace {

/// The RAM cache takes nothing, so that what a slot loses is lost.
FakeHostOptions one_slot_without_states() {
    FakeHostOptions options;
    options.context.n_slots = 1;
    options.context.fails_to_read_state = true;
    options.loras.resize(1);
    return options;
}

Task with_adapter(Task task) {
    task.params.lora = std::map<std::int32_t, float>{{0, 0.5F}};
    return task;
}

Task broken(Task task) {
    task.params.sampling.grammar = "broken";
    return task;
}

Task on_slot(SequenceId slot, Task task) {
    task.id_slot = slot;
    return task;
}

}  // namespace

TEST_CASE("a request that is refused leaves the prompt that its slot holds") {
    RunningEngine running(one_slot_without_states());
    running.run_one(completion(prompt_of(40)));
    CHECK(running.run_one(broken(with_adapter(completion(prompt_of(20, 30))))).kind == ResultKind::error);
    CHECK(running.run_one(completion(prompt_of(40))).n_prompt_cached == 39);
}

TEST_CASE("a request that takes over a slot under another adapter starts afresh") {
    RunningEngine running(one_slot_without_states());
    running.run_one(completion(prompt_of(40)));
    CHECK(running.run_one(with_adapter(completion(prompt_of(40)))).n_prompt_cached == 0);
}

TEST_CASE("when one choice is refused none starts") {
    RunningEngine running;
    Task parent = completion(prompt_of(10));
    parent.children = {1};
    for (const Result& result : running.run({parent, broken(completion({}))})) {
        CHECK(result.error == ErrorKind::invalid_request);
        CHECK(result.text.starts_with("Failed to initialize samplers: "));
    }
    CHECK(running.journal->windows().empty());
}

TEST_CASE("a prompt whose slot a choice takes comes back from host memory") {
    FakeHostOptions options;
    options.context.n_slots = 2;
    RunningEngine running(options);
    const std::vector<Token> tokens = running.run_one(on_slot(1, completion(prompt_of(40)))).tokens;
    Task parent = on_slot(0, completion(prompt_of(20, 30)));
    parent.children = {1};
    running.run({parent, completion({})});
    const Result again = running.run_one(completion(prompt_of(40)));
    CHECK(again.n_prompt_cached == 39);
    CHECK(again.tokens == tokens);
}
