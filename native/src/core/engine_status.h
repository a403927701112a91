// What every thread may read of an engine without asking the decode thread, and wait for (10 §24.4).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "core/model_host.h"
#include "core/snapshot.h"

namespace paddock {

/// Written by the decode thread, and before it starts and after it ended by whoever loads and shuts down.
class EngineStatus {
  public:
    EngineState state() const;
    std::shared_ptr<const Snapshot> snapshot() const;
    /// Of the last load; empty before the first.
    std::optional<ModelMeta> meta() const;
    std::optional<ContextFacts> facts() const;
    std::int32_t n_slots() const;
    /// Null while no model is in memory.
    std::shared_ptr<const Vocabulary> vocabulary() const;

    /// Everybody who waits looks again.
    void set_state(EngineState state);
    /// `fresh` gets the state of this moment.
    void publish(Snapshot fresh);
    void set_model(const Loaded& loaded);
    void forget_vocabulary();

    /// Blocks until `is_done(state)`, which is asked again with every `set_state`; the state it was true for.
    template <typename Predicate>
    EngineState wait(const Predicate& is_done) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return is_done(state_); });
        return state_;
    }

  private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    EngineState state_ = EngineState::fresh;
    std::shared_ptr<const Snapshot> snapshot_ = std::make_shared<const Snapshot>();
    std::optional<ModelMeta> meta_;
    std::optional<ContextFacts> facts_;
    std::int32_t n_slots_ = 0;
    std::shared_ptr<const Vocabulary> vocabulary_;
};

}  // namespace paddock
