// A model that comes into memory and leaves it, with what of it stays: its prompt cache, its counts and the
// scales that clients gave its adapters (10 §21).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/adapters.h"
#include "core/engine_status.h"
#include "core/metrics.h"
#include "core/model_host.h"
#include "core/params.h"
#include "core/prompt_cache.h"
#include "core/result_queue.h"
#include "core/scheduler.h"
#include "core/task_queue.h"

namespace paddock {

/// Of the decode thread, and before it starts of the loader's.
class ResidentModel {
  public:
    /// `tasks`, `results` and `status` outlive it.
    ResidentModel(EngineParams params, std::unique_ptr<ModelHost> host, TaskQueue& tasks,
                  ResultQueue& results, EngineStatus& status);
    ResidentModel(const ResidentModel&) = delete;
    ResidentModel& operator=(const ResidentModel&) = delete;

    /// Blocks while weights are read. Throws LoadError; no model is in memory then.
    void load(const std::function<bool()>& is_cancelled);
    /// Prompts go to the RAM cache, then the model leaves memory (10 §21.2).
    void put_to_sleep();
    /// The model leaves memory as it is.
    void let_go();

    bool is_in_memory() const { return scheduler_ != nullptr; }
    /// Valid while it is in memory.
    Scheduler& scheduler() { return *scheduler_; }
    const EngineParams& params() const { return params_; }
    void log(int level, const std::string& text) const { host_->log(level, text); }

    /// Readers see slots, counts and state of this moment.
    void publish();
    void enter(EngineState state);

  private:
    void take_in();
    void restore_scales();
    void keep_scales();

    EngineParams params_;
    std::unique_ptr<ModelHost> host_;
    TaskQueue& tasks_;
    ResultQueue& results_;
    EngineStatus& status_;
    Metrics metrics_;
    /// Of the last time that the model was in memory; empty before.
    ScaleMap scales_;

    std::unique_ptr<Loaded> loaded_;
    std::unique_ptr<PromptCache> cache_;
    std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace paddock
