// The engine: a model, its slots, and the thread that decodes for them (10 §1-2).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model_host.h"
#include "core/params.h"
#include "core/result.h"
#include "core/snapshot.h"
#include "core/task.h"

namespace paddock {

class EngineLoop;

class Engine {
  public:
    Engine(EngineParams params, std::unique_ptr<ModelHost> host);
    /// Ends the decode thread and frees everything.
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Loads the model; blocks for as long as that takes. Throws LoadError, after which the state is
    /// `failed`.
    void load();
    /// Starts the decode thread of a loaded engine; after a shutdown frees the model instead.
    void start();

    /// Takes tasks in order; a request's children and parent come in one call. Each gets its id here, and ids
    /// named by `children` and `parent` are positions within the call. Never blocks.
    std::vector<TaskId> submit(std::vector<Task> tasks);
    void cancel(const std::vector<TaskId>& ids);
    /// Up to `max` results; with `wait` blocks until there is one or the engine stops.
    std::vector<Result> poll(std::size_t max, bool wait);
    /// Readable when results wait; `poll` drains it (10 §1.5).
    int notify_fd() const;

    std::shared_ptr<const Snapshot> snapshot() const;
    EngineState state() const;
    /// Of the last load; empty before the first.
    std::optional<ModelMeta> meta() const;
    std::optional<ContextFacts> facts() const;
    std::int32_t n_slots() const;
    /// Drafters of the last load.
    SpeculationFacts speculation() const;
    /// Null while asleep or not loaded.
    std::shared_ptr<const Vocabulary> vocabulary() const;

    void sleep();
    /// Whether it is ready afterwards.
    bool wake();
    /// Ends what runs, with errors to those who wait; false when the window did not end in time.
    bool shutdown(std::int64_t timeout_ms);

  private:
    std::unique_ptr<EngineLoop> loop_;
};

}  // namespace paddock
