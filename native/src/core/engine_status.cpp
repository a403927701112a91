#include "core/engine_status.h"

#include <utility>

namespace paddock {

EngineState EngineStatus::state() const {
    const std::lock_guard lock(mutex_);
    return state_;
}

std::shared_ptr<const Snapshot> EngineStatus::snapshot() const {
    const std::lock_guard lock(mutex_);
    return snapshot_;
}

std::optional<ModelMeta> EngineStatus::meta() const {
    const std::lock_guard lock(mutex_);
    return meta_;
}

std::optional<ContextFacts> EngineStatus::facts() const {
    const std::lock_guard lock(mutex_);
    return facts_;
}

std::int32_t EngineStatus::n_slots() const {
    const std::lock_guard lock(mutex_);
    return n_slots_;
}

std::shared_ptr<const Vocabulary> EngineStatus::vocabulary() const {
    const std::lock_guard lock(mutex_);
    return vocabulary_;
}

void EngineStatus::set_state(EngineState state) {
    const std::lock_guard lock(mutex_);
    state_ = state;
    changed_.notify_all();
}

void EngineStatus::publish(Snapshot fresh) {
    auto snapshot = std::make_shared<Snapshot>(std::move(fresh));
    const std::lock_guard lock(mutex_);
    snapshot->state = state_;
    snapshot_ = std::move(snapshot);
}

void EngineStatus::set_model(const Loaded& loaded) {
    const std::lock_guard lock(mutex_);
    meta_ = loaded.meta;
    facts_ = loaded.context->facts();
    n_slots_ = loaded.n_slots;
    vocabulary_ = loaded.vocabulary;
}

void EngineStatus::forget_vocabulary() {
    const std::lock_guard lock(mutex_);
    vocabulary_.reset();
}

}  // namespace paddock
