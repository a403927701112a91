#include "core/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "core/decode_state.h"
#include "core/result_queue.h"
#include "core/scheduler.h"
#include "core/slot_view.h"
#include "core/task_queue.h"

namespace paddock {

namespace {

constexpr Micros us_per_s = 1'000'000;
constexpr Micros least_awake_us = us_per_s / 2;

bool is_cancel(const Work& work) { return work.tasks.front().kind == TaskKind::cancel; }

}  // namespace

class Engine::Impl {
  public:
    Impl(EngineParams params, std::unique_ptr<ModelHost> host)
        : params_(std::move(params)), host_(std::move(host)) {
        publish();
    }

    ~Impl() {
        stop();
        if (thread_.joinable()) {
            thread_.join();
        }
    }

    void load() {
        set_state(EngineState::loading);
        try {
            take_in(host_->load(params_, [this] { return is_stopping_.load(); }));
        } catch (...) {
            set_state(EngineState::failed);
            throw;
        }
    }

    void start() {
        set_state(EngineState::ready);
        thread_ = std::thread([this] { run(); });
    }

    std::vector<TaskId> submit(std::vector<Task> tasks);
    void cancel(const std::vector<TaskId>& ids);
    std::vector<Result> poll(std::size_t max, bool wait) { return results_.take(max, wait); }
    int notify_fd() const { return results_.descriptor(); }

    EngineState state() const {
        const std::lock_guard lock(mutex_);
        return state_;
    }
    std::shared_ptr<const Snapshot> snapshot() const {
        const std::lock_guard lock(mutex_);
        return snapshot_;
    }
    std::optional<ModelMeta> meta() const {
        const std::lock_guard lock(mutex_);
        return meta_;
    }
    std::optional<ContextFacts> facts() const {
        const std::lock_guard lock(mutex_);
        return facts_;
    }
    std::int32_t n_slots() const {
        const std::lock_guard lock(mutex_);
        return n_slots_;
    }
    std::shared_ptr<const Vocabulary> vocabulary() const {
        const std::lock_guard lock(mutex_);
        return vocabulary_;
    }

    void sleep();
    bool wake();
    bool shutdown(std::int64_t timeout_ms);

  private:
    void run();
    void rest();
    void fall_asleep();
    void wake_up();
    void take_in(Loaded loaded);
    void let_go();
    void publish();
    void set_state(EngineState state);
    void stop();
    void refuse_queued(ErrorKind kind, const std::string& message);
    void refuse(const Task& task, ErrorKind kind, const std::string& message);
    bool has_work_for_a_model();
    std::optional<Micros> patience(Micros idle_since) const;

    EngineParams params_;
    std::unique_ptr<ModelHost> host_;
    TaskQueue tasks_;
    ResultQueue results_;
    Metrics metrics_;

    // Of the decode thread, and before it starts of the loader's.
    std::optional<Loaded> loaded_;
    /// Outlives sleep, unless it is not to (10 §21.2).
    std::unique_ptr<PromptCache> cache_;
    std::unique_ptr<Scheduler> scheduler_;

    std::thread thread_;
    std::atomic<bool> is_stopping_ = false;
    std::atomic<bool> wants_sleep_ = false;
    std::atomic<bool> wants_wake_ = false;
    std::atomic<TaskId> next_id_ = 0;

    mutable std::mutex mutex_;
    std::condition_variable state_changed_;
    EngineState state_ = EngineState::fresh;
    bool has_ended_ = false;
    std::shared_ptr<const Snapshot> snapshot_;
    std::optional<ModelMeta> meta_;
    std::optional<ContextFacts> facts_;
    std::int32_t n_slots_ = 0;
    std::shared_ptr<const Vocabulary> vocabulary_;
};

std::vector<TaskId> Engine::Impl::submit(std::vector<Task> tasks) {
    std::vector<TaskId> ids;
    for (Task& task : tasks) {
        task.id = next_id_++;
        ids.push_back(task.id);
    }
    results_.open(ids);
    std::vector<bool> is_child(tasks.size(), false);
    for (const Task& task : tasks) {
        for (const TaskId position : task.children) {
            is_child.at(static_cast<std::size_t>(position)) = true;
        }
    }
    std::vector<Work> works;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (is_child[i]) {
            continue;
        }
        Work work;
        Task parent = tasks[i];
        for (TaskId& position : parent.children) {
            Task child = tasks[static_cast<std::size_t>(position)];
            child.parent = parent.id;
            child.choice = static_cast<std::uint32_t>(work.tasks.size()) + 1;
            child.tokens = parent.tokens;
            position = child.id;
            work.tasks.push_back(std::move(child));
        }
        work.tasks.insert(work.tasks.begin(), std::move(parent));
        works.push_back(std::move(work));
    }
    const EngineState now = state();
    if (now == EngineState::failed || now == EngineState::stopped || is_stopping_) {
        for (const Work& work : works) {
            for (const Task& task : work.tasks) {
                refuse(task, ErrorKind::unavailable, "The engine has stopped");
            }
        }
    } else {
        tasks_.push(std::move(works));
    }
    return ids;
}

void Engine::Impl::cancel(const std::vector<TaskId>& ids) {
    results_.close(ids);
    Task task;
    task.kind = TaskKind::cancel;
    task.cancelled = ids;
    // Behind what it cancels, which may not have been taken yet; the queue is emptied as a whole.
    tasks_.push({Work{.tasks = {std::move(task)}}});
}

void Engine::Impl::run() {
    Micros idle_since = now_us();
    while (!is_stopping_) {
        if (scheduler_ == nullptr) {
            rest();
            idle_since = now_us();
            continue;
        }
        if (scheduler_->cycle()) {
            idle_since = now_us();
            if (scheduler_->is_lost()) {
                set_state(EngineState::failed);
                refuse_queued(ErrorKind::server, "The device of this engine fails every computation");
                break;
            }
            continue;
        }
        const std::optional<Micros> left_us = patience(idle_since);
        if (wants_sleep_ || (left_us.has_value() && *left_us <= 0)) {
            fall_asleep();
        } else {
            tasks_.wait(left_us);
        }
    }
    if (scheduler_ != nullptr) {
        scheduler_->fail_all(ErrorKind::unavailable, "The server is shutting down");
    }
    refuse_queued(ErrorKind::unavailable, "The server is shutting down");
    let_go();
    const bool has_failed = state() == EngineState::failed;
    set_state(has_failed ? EngineState::failed : EngineState::stopped);
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    state_changed_.notify_all();
}

/// How long an idle engine stays awake; none: for ever.
std::optional<Micros> Engine::Impl::patience(Micros idle_since) const {
    if (params_.sleep_idle_s < 0) {
        return std::nullopt;
    }
    // Whoever woke it has not sent its task yet.
    return idle_since + std::max<Micros>(params_.sleep_idle_s * us_per_s, least_awake_us) - now_us();
}

/// Asleep until somebody wants the model.
void Engine::Impl::rest() {
    if (wants_wake_ || has_work_for_a_model()) {
        wake_up();
    } else {
        tasks_.wait(std::nullopt);
    }
}

/// Cancels alone don't wake anybody; what they name is dropped here.
bool Engine::Impl::has_work_for_a_model() {
    std::deque<Work> works = tasks_.take_all();
    std::vector<Work> kept;
    for (Work& work : works) {
        if (!is_cancel(work)) {
            kept.push_back(std::move(work));
            continue;
        }
        const std::vector<TaskId>& ids = work.tasks.front().cancelled;
        std::erase_if(kept, [&](const Work& waiting) {
            return std::ranges::find(ids, waiting.tasks.front().id) != ids.end();
        });
    }
    const bool has_work = !kept.empty();
    tasks_.push(std::move(kept));
    return has_work;
}

void Engine::Impl::fall_asleep() {
    host_->log(log_info, "falling asleep: the model leaves memory");
    scheduler_->save_prompts();
    let_go();
    if (!params_.sleep_keep_cache) {
        cache_.reset();
    }
    wants_sleep_ = false;
    set_state(EngineState::sleeping);
}

void Engine::Impl::wake_up() {
    set_state(EngineState::waking);
    wants_wake_ = false;
    try {
        take_in(host_->load(params_, [this] { return is_stopping_.load(); }));
        set_state(EngineState::ready);
    } catch (const std::exception& problem) {
        let_go();
        set_state(EngineState::sleeping);
        refuse_queued(ErrorKind::unavailable,
                      std::string("The model could not be loaded again: ") + problem.what());
    }
}

void Engine::Impl::take_in(Loaded loaded) {
    loaded_.emplace(std::move(loaded));
    const ContextFacts& facts = loaded_->context->facts();
    if (cache_ == nullptr) {
        cache_ = std::make_unique<PromptCache>(params_.cache_ram_mib, facts.n_ctx);
    }
    {
        const std::lock_guard lock(mutex_);
        meta_ = loaded_->meta;
        facts_ = facts;
        n_slots_ = loaded_->n_slots;
        vocabulary_ = loaded_->vocabulary;
    }
    DecodeState state(params_, *loaded_, results_, *cache_, metrics_,
                      [this](int level, const std::string& text) { host_->log(level, text); });
    scheduler_ = std::make_unique<Scheduler>(std::move(state), tasks_, [this] { publish(); });
    publish();
}

void Engine::Impl::let_go() {
    scheduler_.reset();
    {
        const std::lock_guard lock(mutex_);
        vocabulary_.reset();
    }
    loaded_.reset();
}

void Engine::Impl::publish() {
    auto fresh = std::make_shared<Snapshot>();
    if (scheduler_ != nullptr) {
        DecodeState& state = scheduler_->state();
        const Micros now = now_us();
        fresh->slots.reserve(state.slots.size());
        for (const Slot& slot : state.slots) {
            fresh->slots.push_back(view_of(slot, state.facts().n_ctx_slot, params_.slots_debug, now));
        }
        fresh->n_processing = static_cast<std::int32_t>(state.busy_slots());
        for (const Work& work : state.deferred) {
            fresh->n_deferred += static_cast<std::int32_t>(work.tasks.size());
        }
    } else if (const auto before = snapshot(); before != nullptr) {
        fresh->slots = before->slots;
    }
    fresh->totals = metrics_.read(now_us());
    if (cache_ != nullptr) {
        fresh->prompt_cache_bytes = cache_->bytes();
        fresh->prompt_cache_entries = cache_->entries();
    }
    const std::lock_guard lock(mutex_);
    fresh->state = state_;
    snapshot_ = std::move(fresh);
}

void Engine::Impl::set_state(EngineState state) {
    {
        const std::lock_guard lock(mutex_);
        state_ = state;
        state_changed_.notify_all();
    }
    publish();
}

void Engine::Impl::sleep() {
    if (state() != EngineState::ready) {
        return;
    }
    wants_sleep_ = true;
    tasks_.wake();
    std::unique_lock lock(mutex_);
    state_changed_.wait(lock, [this] { return !wants_sleep_ || has_ended_; });
}

bool Engine::Impl::wake() {
    std::unique_lock lock(mutex_);
    if (state_ == EngineState::sleeping) {
        wants_wake_ = true;
        tasks_.wake();
        state_changed_.wait(lock,
                            [this] { return (!wants_wake_ && state_ != EngineState::waking) || has_ended_; });
    } else if (state_ == EngineState::waking) {
        state_changed_.wait(lock, [this] { return state_ != EngineState::waking || has_ended_; });
    }
    return state_ == EngineState::ready;
}

void Engine::Impl::stop() {
    is_stopping_ = true;
    tasks_.wake();
    results_.shut();
}

bool Engine::Impl::shutdown(std::int64_t timeout_ms) {
    is_stopping_ = true;
    tasks_.wake();
    if (thread_.joinable()) {
        std::unique_lock lock(mutex_);
        const bool has_ended = state_changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                                                       [this] { return has_ended_; });
        if (!has_ended) {
            return false;
        }
        lock.unlock();
        thread_.join();
    } else {
        // The loader's thread still builds what would be freed here.
        std::unique_lock lock(mutex_);
        const bool is_at_rest = state_changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                                                        [this] { return state_ != EngineState::loading; });
        if (!is_at_rest) {
            return false;
        }
        lock.unlock();
        let_go();
        set_state(EngineState::stopped);
    }
    results_.shut();
    return true;
}

void Engine::Impl::refuse_queued(ErrorKind kind, const std::string& message) {
    for (const Work& work : tasks_.take_all()) {
        for (const Task& task : work.tasks) {
            if (task.kind != TaskKind::cancel) {
                refuse(task, kind, message);
            }
        }
    }
}

void Engine::Impl::refuse(const Task& task, ErrorKind kind, const std::string& message) {
    Result result;
    result.id = task.id;
    result.index = task.index;
    result.kind = ResultKind::error;
    result.error = kind;
    result.text = message;
    results_.push(std::move(result));
}

Engine::Engine(EngineParams params, std::unique_ptr<ModelHost> host)
    : impl_(std::make_unique<Impl>(std::move(params), std::move(host))) {}

Engine::~Engine() = default;

void Engine::load() { impl_->load(); }

void Engine::start() { impl_->start(); }

std::vector<TaskId> Engine::submit(std::vector<Task> tasks) { return impl_->submit(std::move(tasks)); }

void Engine::cancel(const std::vector<TaskId>& ids) { impl_->cancel(ids); }

std::vector<Result> Engine::poll(std::size_t max, bool wait) { return impl_->poll(max, wait); }

int Engine::notify_fd() const { return impl_->notify_fd(); }

std::shared_ptr<const Snapshot> Engine::snapshot() const { return impl_->snapshot(); }

EngineState Engine::state() const { return impl_->state(); }

std::optional<ModelMeta> Engine::meta() const { return impl_->meta(); }

std::optional<ContextFacts> Engine::facts() const { return impl_->facts(); }

std::int32_t Engine::n_slots() const { return impl_->n_slots(); }

std::shared_ptr<const Vocabulary> Engine::vocabulary() const { return impl_->vocabulary(); }

void Engine::sleep() { impl_->sleep(); }

bool Engine::wake() { return impl_->wake(); }

bool Engine::shutdown(std::int64_t timeout_ms) { return impl_->shutdown(timeout_ms); }

}  // namespace paddock
