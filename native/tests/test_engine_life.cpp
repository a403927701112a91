// How an engine loads, sleeps, wakes, fails and ends, over a fake model.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "running_engine.h"

using namespace paddock;
using namespace paddock::testing;

namespace {

constexpr std::int64_t long_ms = 20'000;

void nap(std::int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

template <typename Condition>
void wait_until(const Condition& condition) {
    for (int i = 0; i < 4000 && !condition(); ++i) {
        nap(5);
    }
}

/// Decodes that have an output throw while the counter is above 0.
FakeHostOptions throwing(const std::shared_ptr<std::atomic<int>>& n_throws) {
    FakeHostOptions options;
    options.context.next = [n_throws](const std::vector<Token>&) -> std::optional<Token> {
        if (n_throws->fetch_sub(1) > 0) {
            throw std::runtime_error("the fake broke");
        }
        return std::nullopt;
    };
    return options;
}

Task lora_task(TaskKind kind, std::map<std::int32_t, float> scales = {}) {
    Task task;
    task.kind = kind;
    task.lora_scales = std::move(scales);
    return task;
}

FakeHostOptions with_two_adapters() {
    FakeHostOptions options;
    options.loras.resize(2);
    options.loras[1].id = 1;
    for (LoraView& lora : options.loras) {
        lora.scale = 1.0F;
    }
    return options;
}

std::unique_ptr<Engine> engine_over(FakeHostOptions options) {
    return std::make_unique<Engine>(EngineParams{}, std::make_unique<FakeHost>(std::move(options)));
}

}  // namespace

TEST_CASE("10 21: an engine that sleeps wakes for a task and still knows its prompts") {
    RunningEngine running;
    const std::vector<Token> tokens = running.run_one(completion(prompt_of(40), 6)).tokens;
    running.engine->sleep();
    CHECK(running.engine->state() == EngineState::sleeping);
    const Result result = running.run_one(completion(prompt_of(40), 6));
    CHECK(result.tokens == tokens);
    CHECK(result.n_prompt_cached == 39);
    CHECK(running.n_loads() == 2);
}

TEST_CASE("10 21.4: a wake that fails tells those who wait, and the next task tries again") {
    auto fails = std::make_shared<std::atomic<bool>>(false);
    FakeHostOptions options;
    options.failure = [fails] { return std::string(*fails ? "model-load" : ""); };
    RunningEngine running(options);
    running.engine->sleep();
    *fails = true;
    CHECK(running.run_one(completion(prompt_of(4))).error == ErrorKind::unavailable);
    *fails = false;
    CHECK(running.run_one(completion(prompt_of(4))).kind == ResultKind::final);
}

TEST_CASE("scales that a client set are the same after sleep") {
    RunningEngine running(with_two_adapters());
    running.run_one(lora_task(TaskKind::lora_set, {{1, 0.25F}}));
    running.engine->sleep();
    const std::vector<LoraView> loras = running.run_one(lora_task(TaskKind::lora_get)).loras;
    REQUIRE(loras.size() == 2);
    CHECK(loras[0].scale == 0.0F);
    CHECK(loras[1].scale == 0.25F);
}

TEST_CASE("scales that a client set outlive a wake that failed") {
    auto fails = std::make_shared<std::atomic<bool>>(false);
    FakeHostOptions options = with_two_adapters();
    options.failure = [fails] { return std::string(*fails ? "model-load" : ""); };
    RunningEngine running(options);
    running.run_one(lora_task(TaskKind::lora_set, {{1, 0.25F}}));
    running.engine->sleep();
    *fails = true;
    running.run_one(lora_task(TaskKind::lora_get));
    *fails = false;
    CHECK(running.run_one(lora_task(TaskKind::lora_get)).loras[1].scale == 0.25F);
}

TEST_CASE("calls of sleep and wake from several threads all come back") {
    RunningEngine running;
    const auto sleeps = [&] {
        for (int i = 0; i < 30; ++i) {
            running.engine->sleep();
        }
    };
    const auto wakes = [&] {
        for (int i = 0; i < 30; ++i) {
            running.engine->wake();
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back(sleeps);
        threads.emplace_back(wakes);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(running.run_one(completion(prompt_of(4))).kind == ResultKind::final);
}

TEST_CASE("a cancel of the first task leaves other cancels alone") {
    RunningEngine running;
    running.engine->sleep();
    const std::vector<TaskId> ids =
        running.engine->submit({completion(prompt_of(4), -1), completion(prompt_of(5), -1)});
    running.engine->cancel({ids[0]});
    running.engine->cancel({ids[1]});
    CHECK(running.run_one(completion(prompt_of(4))).kind == ResultKind::final);
    wait_until([&] { return running.engine->snapshot()->n_processing == 0; });
    CHECK(running.engine->snapshot()->n_processing == 0);
}

TEST_CASE("10 3.6: on memory that can't shift a full slot ends its request, whatever was asked for") {
    FakeHostOptions options;
    options.context.facts.can_shift = false;
    EngineParams params;
    params.context_shift = true;
    RunningEngine running(options, params);
    CHECK(running.run_one(completion(prompt_of(120), 100)).stop_detail == "context_full");
}

TEST_CASE("a cycle that throws ends the requests of that moment with its reason") {
    auto n_throws = std::make_shared<std::atomic<int>>(1);
    RunningEngine running(throwing(n_throws));
    const Result result = running.run_one(completion(prompt_of(10)));
    CHECK(result.error == ErrorKind::server);
    CHECK(result.text == "The engine failed: the fake broke");
}

TEST_CASE("after a cycle that threw no prompt is trusted, and requests get what they would have got") {
    auto n_throws = std::make_shared<std::atomic<int>>(0);
    RunningEngine running(throwing(n_throws));
    const std::vector<Token> tokens = running.run_one(completion(prompt_of(30), 6)).tokens;
    *n_throws = 1;
    running.run_one(completion(prompt_of(30), 6));
    const Result again = running.run_one(completion(prompt_of(30), 6));
    CHECK(again.n_prompt_cached == 0);
    CHECK(again.tokens == tokens);
}

TEST_CASE("three cycles in a row that throw end the engine") {
    auto n_throws = std::make_shared<std::atomic<int>>(1000);
    RunningEngine running(throwing(n_throws));
    for (int i = 0; i < 3; ++i) {
        CHECK(running.run_one(completion(prompt_of(10))).kind == ResultKind::error);
    }
    wait_until([&] { return running.engine->state() == EngineState::failed; });
    CHECK(running.engine->state() == EngineState::failed);
    CHECK(running.run_one(completion(prompt_of(10))).kind == ResultKind::error);
}

TEST_CASE("a cycle that throws now and then leaves the engine working") {
    auto n_throws = std::make_shared<std::atomic<int>>(0);
    RunningEngine running(throwing(n_throws));
    for (int i = 0; i < 5; ++i) {
        *n_throws = 1;
        CHECK(running.run_one(completion(prompt_of(10))).kind == ResultKind::error);
        CHECK(running.run_one(completion(prompt_of(10))).kind == ResultKind::final);
    }
    CHECK(running.engine->state() == EngineState::ready);
}

TEST_CASE("tasks that wait for a load that fails are told") {
    FakeHostOptions options;
    options.failure = [] { return std::string("model-load"); };
    const auto engine = engine_over(options);
    engine->submit({completion(prompt_of(4))});
    CHECK_THROWS_AS(engine->load(), LoadError);
    CHECK(engine->poll(1, true).front().error == ErrorKind::unavailable);
}

TEST_CASE("10 22.3: a shutdown tells everybody who waits") {
    FakeHostOptions options;
    options.context.facts.n_ctx = 100000;
    options.context.facts.n_ctx_slot = 50000;
    RunningEngine running(options);
    std::vector<Task> tasks(9, completion(prompt_of(20), -1));
    const std::vector<TaskId> ids = running.engine->submit(tasks);
    wait_until([&] { return running.engine->snapshot()->n_processing == 4; });
    CHECK(running.engine->shutdown(long_ms));
    for (const Result& result : running.collect(ids)) {
        CHECK(result.error == ErrorKind::unavailable);
    }
    CHECK(running.engine->state() == EngineState::stopped);
}

TEST_CASE("a shutdown during a load is done when the load is, and the engine never starts") {
    auto is_loading = std::make_shared<std::atomic<bool>>(false);
    auto may_go_on = std::make_shared<std::atomic<bool>>(false);
    FakeHostOptions options;
    options.failure = [=] {
        *is_loading = true;
        wait_until([&] { return may_go_on->load(); });
        return std::string();
    };
    const auto engine = engine_over(options);
    std::thread loader([&] {
        engine->load();
        engine->start();
    });
    wait_until([&] { return is_loading->load(); });
    CHECK_FALSE(engine->shutdown(1));
    *may_go_on = true;
    CHECK(engine->shutdown(long_ms));
    loader.join();
    CHECK(engine->state() == EngineState::stopped);
    CHECK(engine->vocabulary() == nullptr);
}

TEST_CASE("a shutdown at any moment of a start ends the engine, and tasks are told") {
    for (int round = 0; round < 100; ++round) {
        const auto engine = engine_over({});
        std::atomic<bool> has_begun = false;
        std::thread loader([&] {
            try {
                has_begun = true;
                engine->load();
            } catch (const LoadError&) {
                return;
            }
            engine->start();
        });
        while (!has_begun) {
        }
        for (volatile int spin = 0; spin < round * 100;) {
            spin = spin + 1;
        }
        const std::vector<TaskId> ids = engine->submit({completion(prompt_of(4), -1)});
        REQUIRE(engine->shutdown(long_ms));
        loader.join();
        std::vector<Result> results;
        while (results.empty()) {
            results = engine->poll(1, false);
        }
        CHECK(results.front().id == ids.front());
    }
}

TEST_CASE("no task is left without an answer by a shutdown at the same time") {
    for (int round = 0; round < 50; ++round) {
        RunningEngine running;
        std::vector<TaskId> ids;
        std::thread client([&] {
            for (int i = 0; i < 20; ++i) {
                ids.push_back(running.engine->submit({completion(prompt_of(4), 2)}).front());
            }
        });
        CHECK(running.engine->shutdown(long_ms));
        client.join();
        CHECK(running.collect(ids).size() == 20);
    }
}
