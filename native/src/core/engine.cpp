#include "core/engine.h"

#include <utility>

#include "core/engine_loop.h"

namespace paddock {

Engine::Engine(EngineParams params, std::unique_ptr<ModelHost> host)
    : loop_(std::make_unique<EngineLoop>(std::move(params), std::move(host))) {}

Engine::~Engine() = default;

void Engine::load() { loop_->load(); }

void Engine::start() { loop_->start(); }

std::vector<TaskId> Engine::submit(std::vector<Task> tasks) { return loop_->submit(std::move(tasks)); }

void Engine::cancel(const std::vector<TaskId>& ids) { loop_->cancel(ids); }

std::vector<Result> Engine::poll(std::size_t max, bool wait) { return loop_->poll(max, wait); }

int Engine::notify_fd() const { return loop_->notify_fd(); }

std::shared_ptr<const Snapshot> Engine::snapshot() const { return loop_->status().snapshot(); }

EngineState Engine::state() const { return loop_->status().state(); }

std::optional<ModelMeta> Engine::meta() const { return loop_->status().meta(); }

std::optional<ContextFacts> Engine::facts() const { return loop_->status().facts(); }

SpeculationFacts Engine::speculation() const { return snapshot()->speculation; }

std::int32_t Engine::n_slots() const { return loop_->status().n_slots(); }

std::shared_ptr<const Vocabulary> Engine::vocabulary() const { return loop_->status().vocabulary(); }

void Engine::sleep() { loop_->sleep(); }

bool Engine::wake() { return loop_->wake(); }

bool Engine::shutdown(std::int64_t timeout_ms) { return loop_->shutdown(timeout_ms); }

}  // namespace paddock
