// What a slot has learnt of drafting, and which requests it holds for (10 §6.5, 11 §15.6).
#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/speculation/draft_model.h"
#include "core/speculation/draft_setting.h"
#include "core/speculation/ngram_drafters.h"
#include "running_engine.h"

using namespace paddock;
using namespace paddock::testing;

namespace {

constexpr std::size_t period = 6;
/// Tokens that a slot drafts at most when it knows nothing yet, in a request as short as this.
constexpr std::size_t first_depth = 2;
constexpr std::int32_t n_short = 8;

/// What the model says for ever.
std::vector<Token> text(std::size_t n) {
    std::vector<Token> tokens = prompt_of(12);
    while (tokens.size() < n) {
        tokens.push_back(tokens[tokens.size() - period]);
    }
    tokens.resize(n);
    return tokens;
}

FakeHostOptions periodic_model() {
    FakeHostOptions options;
    options.context.next = [](const std::vector<Token>& tokens) -> std::optional<Token> {
        return tokens.size() < period ? std::nullopt : std::optional(tokens[tokens.size() - period]);
    };
    return options;
}

EngineParams learning() {
    EngineParams params;
    params.speculation.types = {"ngram-simple"};
    params.speculation.simple = {.n = 3, .m = 8, .min_hits = 1};
    params.speculation.depth.controller = "fringe";
    return params;
}

/// The engine has served a request of 72 tokens whose drafts were all right.
RunningEngine learnt(FakeHostOptions model = periodic_model(), EngineParams params = learning()) {
    RunningEngine running(std::move(model), std::move(params));
    const Result result = running.run_one(completion(text(12), 60));
    CHECK(result.speculation.drafted_by_position.size() > first_depth);
    return running;
}

std::size_t longest_draft_of(RunningEngine& running, std::vector<Token> prompt, SequenceId slot = -1) {
    Task task = completion(std::move(prompt), n_short);
    task.id_slot = slot;
    return running.run_one(task).speculation.drafted_by_position.size();
}

void wait_until_idle(const RunningEngine& running) {
    while (running.engine->snapshot()->n_processing > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

/// Closed until it is opened.
class Gate {
  public:
    void open() {
        const std::lock_guard lock(mutex_);
        is_open_ = true;
        changed_.notify_all();
    }
    void pass() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return is_open_; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_open_ = false;
};

SlotRequest request_at(float temperature) {
    SlotRequest request;
    GenerationParams params;
    params.sampling.temperature = temperature;
    auto notes = std::make_shared<FakeSamplerNotes>();
    notes->params = params.sampling;
    notes->draws = true;
    request.params = std::make_shared<const GenerationParams>(params);
    request.sampler = std::make_unique<FakeSampler>(notes);
    return request;
}

}  // namespace

TEST_CASE("10 §6.5: what was learnt holds for a request that goes on with the text") {
    RunningEngine running = learnt();
    CHECK(longest_draft_of(running, text(76)) > first_depth);
    CHECK(longest_draft_of(running, text(90), 0) > first_depth);
}

TEST_CASE("10 §6.5: it does not hold when most of the prompt is new") {
    RunningEngine running = learnt();
    std::vector<Token> prompt = text(20);
    for (std::size_t i = 0; i < 60; ++i) {
        prompt.push_back(40 + static_cast<Token>(i % period));
    }
    CHECK(longest_draft_of(running, prompt, 0) == first_depth);
}

TEST_CASE(
    "10 §6.5: it does not hold when most of the slot's text goes, although all of the prompt is cached") {
    RunningEngine running = learnt();
    CHECK(longest_draft_of(running, text(30)) == first_depth);
}

TEST_CASE("10 §6.5: it does not hold in a slot that was only the least recently used") {
    FakeHostOptions model = periodic_model();
    model.context.n_slots = 1;
    EngineParams params = learning();
    params.slot_prompt_similarity = 0.0F;
    RunningEngine running = learnt(model, params);
    CHECK(longest_draft_of(running, text(76)) == first_depth);
}

TEST_CASE("11 §15.6: a cancelled request takes what was learnt with it") {
    FakeHostOptions model = periodic_model();
    model.context.facts.n_ctx = 8192;
    model.context.facts.n_ctx_slot = 4096;
    const auto gate = std::make_shared<Gate>();
    model.context.next = [gate](const std::vector<Token>& tokens) -> std::optional<Token> {
        if (tokens.size() > 100) {
            gate->pass();
        }
        return tokens.size() < period ? std::nullopt : std::optional(tokens[tokens.size() - period]);
    };
    RunningEngine running = learnt(model);
    const std::vector<TaskId> ids = running.engine->submit({completion(text(76), -1)});
    while (running.engine->snapshot()->slots.front().n_cached_tokens < 80) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    running.engine->cancel(ids);
    gate->open();
    wait_until_idle(running);
    const auto n_held = static_cast<std::size_t>(running.engine->snapshot()->slots.front().n_cached_tokens);
    CHECK(longest_draft_of(running, text(n_held + 4)) == first_depth);
    CHECK(longest_draft_of(running, text(n_held + 40)) == first_depth);
}

TEST_CASE("11 §15.6: a slot that was restored knows nothing of drafting") {
    RunningEngine running = learnt();
    const std::string path =
        (std::filesystem::temp_directory_path() / ("paddock-drafting-" + std::to_string(now_us()))).string();
    for (const TaskKind kind : {TaskKind::slot_save, TaskKind::slot_restore}) {
        Task action;
        action.kind = kind;
        action.id_slot = 0;
        action.file_path = path;
        CHECK(running.run_one(action).kind != ResultKind::error);
    }
    std::filesystem::remove(path);
    CHECK(longest_draft_of(running, text(76)) == first_depth);
}

TEST_CASE("11 §15.6: under another adapter nothing is known of drafting") {
    FakeHostOptions model = periodic_model();
    LoraView lora;
    lora.scale = 1.0F;
    model.loras = {lora};
    RunningEngine running = learnt(model);
    Task other = completion(text(76), n_short);
    other.id_slot = 0;
    other.params.lora = std::map<std::int32_t, float>{{0, 0.5F}};
    CHECK(running.run_one(other).speculation.drafted_by_position.size() == first_depth);
}

TEST_CASE("11 §15.6: a draft from the text is the same at every temperature of the request") {
    std::string reason;
    std::string detail;
    const SpeculationParams served;
    const auto drafter = make_ngram_drafter(DraftType::ngram_simple, served, 4, 1000, reason, detail);
    const DepthSetting cold = draft_setting(request_at(0.0F), *drafter, served, VerifyMode::rejection);
    const DepthSetting hot = draft_setting(request_at(0.9F), *drafter, served, VerifyMode::rejection);
    CHECK(is_comparable(cold, hot));
    CHECK(hot.mode == "exact");
    CHECK(hot.base == served.simple.m);
}

TEST_CASE("11 §5.5, §15.6: a draft model draws at the temperature of the request, or at its own") {
    FakeContext context;
    const FakeVocabulary vocabulary{64};
    const DraftModel drafter(context, vocabulary, 64, 4);
    SpeculationParams served;
    const auto setting = [&](float temperature, VerifyMode asked) {
        return draft_setting(request_at(temperature), drafter, served, asked);
    };
    CHECK(setting(0.9F, VerifyMode::rejection).temperature == 0.9F);
    CHECK(setting(0.9F, VerifyMode::rejection).mode == "rejection");
    CHECK(setting(0.9F, VerifyMode::match_first).mode == "match-first");
    CHECK(setting(0.9F, VerifyMode::exact).temperature == 0.0F);
    CHECK(setting(0.0F, VerifyMode::rejection).temperature == 0.0F);
    CHECK(setting(0.0F, VerifyMode::rejection).mode == "exact");
    CHECK_FALSE(is_comparable(setting(0.9F, VerifyMode::rejection), setting(0.5F, VerifyMode::rejection)));
    served.draft_temperature = 0.3F;
    CHECK(is_comparable(setting(0.9F, VerifyMode::rejection), setting(0.5F, VerifyMode::rejection)));
    served.draft_temperature = 0.0F;
    CHECK(setting(0.9F, VerifyMode::rejection).mode == "exact");
}
