// An engine over the fake model, and what its tasks gave back.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "fake_host.h"

namespace paddock::testing {

class RunningEngine {
  public:
    explicit RunningEngine(FakeHostOptions options = {}, EngineParams params = {}) {
        auto host = std::make_unique<FakeHost>(std::move(options));
        host_ = host.get();
        journal = host->journal();
        samplers = host->sampler_notes();
        params.cache_ram_mib = std::min<std::int64_t>(params.cache_ram_mib, 16);
        engine = std::make_unique<Engine>(std::move(params), std::move(host));
        engine->load();
        engine->start();
    }

    /// Last results of all tasks, by their position in the call; partials are added up in `streamed`.
    std::vector<Result> run(std::vector<Task> tasks) {
        const std::vector<TaskId> ids = engine->submit(std::move(tasks));
        return collect(ids);
    }

    std::vector<Result> collect(const std::vector<TaskId>& ids) {
        std::map<TaskId, Result> found;
        while (found.size() < ids.size()) {
            for (Result& result : engine->poll(16, true)) {
                if (result.is_last()) {
                    found[result.id] = std::move(result);
                } else {
                    streamed.push_back(std::move(result));
                }
            }
        }
        std::vector<Result> results;
        for (const TaskId id : ids) {
            results.push_back(std::move(found[id]));
        }
        return results;
    }

    Result run_one(Task task) { return run({std::move(task)}).front(); }

    std::int32_t n_loads() const { return host_->n_loads(); }
    /// Whether a line of this level that holds the text was logged.
    bool has_line(int level, const std::string& part) const {
        return std::ranges::any_of(host_->lines(), [&](const auto& line) {
            return line.first == level && line.second.find(part) != std::string::npos;
        });
    }

    std::unique_ptr<Engine> engine;
    std::shared_ptr<Journal> journal;
    /// To be read while no decode thread runs.
    FakeSamplerMaker::Log samplers;
    std::vector<Result> streamed;

  private:
    FakeHost* host_ = nullptr;
};

/// Tokens 10, 11, … 9 + n, after `first`.
inline std::vector<Token> prompt_of(std::int32_t n, Token first = 10) {
    std::vector<Token> tokens;
    for (std::int32_t i = 0; i < n; ++i) {
        tokens.push_back(first + i % 40);
    }
    return tokens;
}

inline Task completion(std::vector<Token> tokens, std::int32_t n_predict = 4) {
    Task task;
    task.tokens = std::move(tokens);
    task.params.n_predict = n_predict;
    task.params.return_tokens = true;
    return task;
}

}  // namespace paddock::testing
