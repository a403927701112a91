// The engine as a whole over a fake model: what requests get, and what they leave behind.
#include <doctest/doctest.h>

#include <chrono>
#include <random>
#include <thread>

#include "running_engine.h"

using namespace paddock;
using namespace paddock::testing;

namespace {

std::vector<Token> plain_tokens(std::vector<Token> prompt, std::int32_t n_predict) {
    RunningEngine fresh;
    return fresh.run_one(completion(std::move(prompt), n_predict)).tokens;
}

FakeHostOptions with_codes(std::deque<std::int32_t> codes) {
    FakeHostOptions options;
    options.context.codes = std::move(codes);
    return options;
}

}  // namespace

TEST_CASE("a request ends at its limit, with its counts") {
    RunningEngine running;
    const Result result = running.run_one(completion(prompt_of(10), 5));
    CHECK(result.kind == ResultKind::final);
    CHECK(result.stop == StopKind::limit);
    CHECK(result.stop_detail == "token_limit");
    CHECK(result.n_decoded == 5);
    CHECK(result.n_prompt_tokens == 10);
    CHECK(result.tokens.size() == 5);
}

TEST_CASE("10 16.8: with a limit of 0 a request ends after its prompt without a token") {
    RunningEngine running;
    const Result result = running.run_one(completion(prompt_of(10), 0));
    CHECK(result.stop == StopKind::limit);
    CHECK(result.n_decoded == 0);
    CHECK(result.text.empty());
}

TEST_CASE("10 8.1: an empty prompt ends at once") {
    RunningEngine running;
    const Result result = running.run_one(completion({}, 5));
    CHECK(result.kind == ResultKind::final);
    CHECK(result.n_decoded == 0);
    CHECK(running.engine->snapshot()->n_processing == 0);
}

TEST_CASE("a prompt as large as a slot is refused with both numbers") {
    RunningEngine running;
    const Result result = running.run_one(completion(prompt_of(128)));
    CHECK(result.kind == ResultKind::error);
    CHECK(result.error == ErrorKind::exceed_context_size);
    CHECK(result.n_prompt_tokens == 128);
    CHECK(result.n_ctx == 128);
}

TEST_CASE("a token outside the vocabulary is refused, and the slot stays usable") {
    RunningEngine running;
    CHECK(running.run_one(completion({99999})).error == ErrorKind::invalid_request);
    CHECK(running.run_one(completion(prompt_of(4))).kind == ResultKind::final);
}

TEST_CASE("a sampler that can't be made is the client's fault") {
    RunningEngine running;
    Task task = completion(prompt_of(4));
    task.params.sampling.grammar = "broken";
    const Result result = running.run_one(task);
    CHECK(result.error == ErrorKind::invalid_request);
    CHECK(result.text.starts_with("Failed to initialize samplers: "));
}

TEST_CASE("16.7: a full slot ends the request") {
    RunningEngine running;
    const Result result = running.run_one(completion(prompt_of(120), 100));
    CHECK(result.stop == StopKind::limit);
    CHECK(result.stop_detail == "context_full");
    CHECK(result.truncated);
}

TEST_CASE("10 9: with context shift a request goes on behind a full slot") {
    EngineParams params;
    params.context_shift = true;
    RunningEngine running({}, params);
    const Result result = running.run_one(completion(prompt_of(100), 200));
    CHECK(result.n_decoded == 200);
    CHECK(result.stop_detail == "token_limit");
    CHECK(result.truncated);
}

TEST_CASE("a prompt that was evaluated is not evaluated again") {
    RunningEngine running;
    const std::vector<Token> once = running.run_one(completion(prompt_of(40), 6)).tokens;
    const Result again = running.run_one(completion(prompt_of(40), 6));
    CHECK(again.n_prompt_cached == 39);
    CHECK(again.timings.prompt_n == 1);
    CHECK(again.tokens == once);
}

TEST_CASE("without its cache a prompt is evaluated whole and gives the same") {
    RunningEngine running;
    const std::vector<Token> once = running.run_one(completion(prompt_of(40), 6)).tokens;
    Task task = completion(prompt_of(40), 6);
    task.params.cache_prompt = false;
    const Result again = running.run_one(task);
    CHECK(again.n_prompt_cached == 0);
    CHECK(again.tokens == once);
}

TEST_CASE("10 14: many requests at once each get what they would get alone") {
    RunningEngine running;
    std::vector<Task> tasks;
    for (Token first = 10; first < 22; ++first) {
        tasks.push_back(completion(prompt_of(20 + first, first), 7));
    }
    const std::vector<Result> results = running.run(tasks);
    for (std::size_t i = 0; i < results.size(); ++i) {
        const Token first = 10 + static_cast<Token>(i);
        CHECK(results[i].tokens == plain_tokens(prompt_of(20 + first, first), 7));
    }
}

TEST_CASE("10 15: choices of one prompt share its evaluation") {
    RunningEngine running;
    Task parent = completion(prompt_of(30), 5);
    parent.children = {1, 2};
    Task first = completion({}, 5);
    first.index = 1;
    Task second = completion({}, 5);
    second.index = 2;
    const std::vector<Result> results = running.run({parent, first, second});
    const std::vector<Token> expected = plain_tokens(prompt_of(30), 5);
    for (const Result& result : results) {
        CHECK(result.tokens == expected);
        CHECK(result.n_prompt_tokens == 30);
    }
    CHECK(running.engine->snapshot()->totals.prompt_tokens == 30);
}

TEST_CASE("more choices than slots are refused") {
    RunningEngine running;
    Task parent = completion(prompt_of(5));
    parent.children = {1, 2, 3, 4};
    const std::vector<Result> results =
        running.run({parent, completion({}), completion({}), completion({}), completion({})});
    for (const Result& result : results) {
        CHECK(result.error == ErrorKind::invalid_request);
    }
}

TEST_CASE("choices share the fate of a prompt that is empty or too long") {
    RunningEngine running;
    Task parent = completion({}, 5);
    parent.children = {1};
    for (const Result& result : running.run({parent, completion({}, 5)})) {
        CHECK(result.kind == ResultKind::final);
    }
    parent.tokens = prompt_of(128);
    for (const Result& result : running.run({parent, completion({}, 5)})) {
        CHECK(result.error == ErrorKind::exceed_context_size);
    }
    CHECK(running.engine->snapshot()->n_processing == 0);
}

TEST_CASE("10 14.3: one row at a time until the owner of the row fails, and others go on") {
    // 60 rows, then 30, 15, 7, 3 and 1.
    RunningEngine running(with_codes({1, 1, 1, 1, 1, 1}));
    const std::vector<Result> results =
        running.run({completion(prompt_of(40), 4), completion(prompt_of(20, 20), 4)});
    CHECK(results[0].kind == ResultKind::error);
    CHECK(results[0].text == "Context size has been exceeded.");
    CHECK(results[1].tokens == plain_tokens(prompt_of(20, 20), 4));
}

TEST_CASE("10 14.4: an aborted window is tried again and gives the same") {
    RunningEngine running(with_codes({0, 2, 2}));
    CHECK(running.run_one(completion(prompt_of(50), 6)).tokens == plain_tokens(prompt_of(50), 6));
}

TEST_CASE("10 14.7: memory that refuses to be cut is filled again") {
    FakeHostOptions options = with_codes({0, 0, 2});
    options.context.refuses_partial_removal = true;
    RunningEngine running(options);
    CHECK(running.run_one(completion(prompt_of(20), 8)).tokens == plain_tokens(prompt_of(20), 8));
    CHECK(running.engine->snapshot()->totals.refills <= 1);
}

TEST_CASE("10 14.5: rows that are invalid end their own slot only") {
    RunningEngine running(with_codes({-1, -1}));
    const std::vector<Result> results =
        running.run({completion(prompt_of(10), 4), completion(prompt_of(12, 20), 4)});
    CHECK(results[0].text == "Invalid input batch.");
    CHECK(results[1].tokens == plain_tokens(prompt_of(12, 20), 4));
}

TEST_CASE("10 14.6: a failed computation ends the requests of its window, and the engine goes on") {
    RunningEngine running(with_codes({-3}));
    CHECK(running.run_one(completion(prompt_of(10))).text == "Compute error.");
    CHECK(running.run_one(completion(prompt_of(10), 4)).tokens == plain_tokens(prompt_of(10), 4));
}

TEST_CASE("10 14.8: three failed computations in a row end the engine") {
    RunningEngine running(with_codes({-3, -3, -3}));
    for (int i = 0; i < 3; ++i) {
        CHECK(running.run_one(completion(prompt_of(10))).kind == ResultKind::error);
    }
    for (int i = 0; i < 200 && running.engine->state() != EngineState::failed; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    CHECK(running.engine->state() == EngineState::failed);
    CHECK(running.run_one(completion(prompt_of(10))).error == ErrorKind::unavailable);
}

TEST_CASE("10 22: a cancelled request leaves its prompt for the next one") {
    FakeHostOptions options;
    options.context.facts.n_ctx = 8192;
    options.context.facts.n_ctx_slot = 4096;
    RunningEngine running(options);
    Task endless = completion(prompt_of(40), -1);
    endless.params.stream = true;
    const std::vector<TaskId> ids = running.engine->submit({endless});
    running.engine->poll(1, true);
    running.engine->cancel(ids);
    for (int i = 0; i < 400 && running.engine->snapshot()->n_processing > 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    CHECK(running.engine->snapshot()->n_processing == 0);
    CHECK(running.run_one(completion(prompt_of(40), 3)).n_prompt_cached == 39);
}

TEST_CASE("10 1.6: a reader that never comes holds nobody up, and loses nothing") {
    FakeHostOptions options;
    options.context.facts.n_ctx = 8192;
    options.context.facts.n_ctx_slot = 4096;
    RunningEngine running(options);
    Task unread = completion(prompt_of(10), 2000);
    unread.params.stream = true;
    const std::vector<TaskId> ids = running.engine->submit({unread});
    for (int i = 0; i < 2000 && running.engine->snapshot()->totals.predicted_tokens < 2000; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const Result last = running.collect(ids).front();
    std::size_t n_tokens = last.tokens.size();
    for (const Result& partial : running.streamed) {
        n_tokens += partial.tokens.size();
    }
    CHECK(n_tokens == 2000);
    CHECK(running.streamed.size() <= 257);
}

TEST_CASE("10 18: embeddings of several inputs come normalised, next to a running completion") {
    FakeHostOptions options;
    options.context.facts.pooling = 1;
    RunningEngine running(options);
    Task embedding;
    embedding.kind = TaskKind::embedding;
    embedding.tokens = prompt_of(12);
    Task other = embedding;
    other.tokens = prompt_of(12, 20);
    const std::vector<Result> results = running.run({embedding, completion(prompt_of(30), 9), other});
    for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
        REQUIRE(results[i].embeddings.size() == 1);
        float sum = 0.0F;
        for (const float value : results[i].embeddings[0]) {
            sum += value * value;
        }
        CHECK(sum == doctest::Approx(1.0F));
    }
    CHECK(results[0].embeddings != results[2].embeddings);
    CHECK(results[1].tokens == plain_tokens(prompt_of(30), 9));
}

TEST_CASE("an embedding input larger than a physical batch is refused") {
    FakeHostOptions options;
    options.context.facts.pooling = 1;
    RunningEngine running(options);
    Task embedding;
    embedding.kind = TaskKind::embedding;
    embedding.tokens = prompt_of(33);
    CHECK(running.run_one(embedding).error == ErrorKind::server);
}

TEST_CASE("10 6.1: a slot that does not exist is refused") {
    RunningEngine running;
    Task task = completion(prompt_of(4));
    task.id_slot = 4;
    CHECK(running.run_one(task).text.starts_with("Invalid slot ID"));
}

TEST_CASE("requests of every shape with cancels leave no slot busy and no memory wrong") {
    RunningEngine running;
    std::mt19937 dice(7);
    std::vector<TaskId> open;
    for (int round = 0; round < 400; ++round) {
        Task task = completion(
            prompt_of(static_cast<std::int32_t>(dice() % 140), 10 + static_cast<Token>(dice() % 20)),
            static_cast<std::int32_t>(dice() % 12));
        task.params.stream = dice() % 2 == 0;
        task.params.n_probs = static_cast<std::int32_t>(dice() % 3);
        task.params.cache_prompt = dice() % 4 != 0;
        task.params.n_cache_reuse = static_cast<std::int32_t>(dice() % 6);
        task.id_slot = dice() % 8 == 0 ? static_cast<std::int32_t>(dice() % 4) : -1;
        task.params.stop = dice() % 3 == 0 ? std::vector<std::string>{"a", "zz"} : std::vector<std::string>{};
        const std::vector<TaskId> ids = running.engine->submit({task});
        if (dice() % 4 == 0) {
            running.engine->cancel(ids);
        } else {
            open.push_back(ids.front());
        }
    }
    running.collect(open);
    for (int i = 0; i < 400 && running.engine->snapshot()->n_processing > 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    CHECK(running.engine->snapshot()->n_processing == 0);
    CHECK(running.engine->snapshot()->n_deferred == 0);
    CHECK(running.run_one(completion(prompt_of(60), 9)).tokens == plain_tokens(prompt_of(60), 9));
}
