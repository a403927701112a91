#include "core/engine_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace paddock {

namespace {

constexpr Micros us_per_s = 1'000'000;
constexpr Micros least_awake_us = us_per_s / 2;
/// Cycles in a row that may throw before the engine counts as broken.
constexpr std::int32_t max_failed_cycles = 3;

constexpr const char* going_away = "The server is shutting down";

Result refusal(const Task& task, ErrorKind kind, const std::string& message) {
    Result result;
    result.id = task.id;
    result.index = task.index;
    result.kind = ResultKind::error;
    result.error = kind;
    result.text = message;
    return result;
}

}  // namespace

EngineLoop::EngineLoop(EngineParams params, std::unique_ptr<ModelHost> host)
    : model_(std::move(params), std::move(host), tasks_, results_, status_) {}

EngineLoop::~EngineLoop() {
    stop();
    results_.shut();
    if (thread_.joinable()) {
        thread_.join();
    }
}

// Life

void EngineLoop::load() {
    set_loading(true);
    model_.enter(EngineState::loading);
    try {
        load_model();
    } catch (...) {
        model_.enter(EngineState::failed);
        refuse_queued(ErrorKind::unavailable, "The model could not be loaded");
        set_loading(false);
        throw;
    }
    set_loading(false);
}

void EngineLoop::set_loading(bool is_loading) {
    const std::lock_guard lock(lifecycle_);
    is_loading_ = is_loading;
    lifecycle_changed_.notify_all();
}

void EngineLoop::load_model() {
    model_.load([this] { return is_stopping_.load(); });
}

void EngineLoop::start() {
    const std::lock_guard lock(lifecycle_);
    // A shutdown that came while the model was loading has won, before or after it freed the model.
    if (is_stopping_) {
        end();
        return;
    }
    model_.enter(EngineState::ready);
    thread_ = std::thread([this] { run(); });
}

bool EngineLoop::shutdown(std::int64_t timeout_ms) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    stop();
    std::unique_lock lock(lifecycle_);
    // A load that is under way still builds what would be freed here; a thread may start meanwhile.
    const bool is_at_rest = lifecycle_changed_.wait_until(
        lock, deadline, [this] { return !is_loading_ && (has_ended_ || !thread_.joinable()); });
    if (!is_at_rest) {
        return false;
    }
    if (thread_.joinable()) {
        thread_.join();
    } else if (!has_ended_) {
        end();
    }
    results_.shut();
    return true;
}

void EngineLoop::stop() {
    is_stopping_ = true;
    tasks_.wake();
}

/// Whoever waits is told, the model leaves memory, and nothing is taken any more.
void EngineLoop::end() {
    const bool has_failed = status_.state() == EngineState::failed && !failure_.empty();
    const ErrorKind kind = has_failed ? ErrorKind::server : ErrorKind::unavailable;
    const std::string why = has_failed ? failure_ : going_away;
    if (model_.is_in_memory()) {
        model_.scheduler().fail_all(kind, why);
    }
    model_.let_go();
    model_.enter(has_failed ? EngineState::failed : EngineState::stopped);
    refuse_queued(kind, why);
}

// Hand over

std::vector<TaskId> EngineLoop::submit(std::vector<Task> tasks) {
    std::vector<TaskId> ids;
    ids.reserve(tasks.size());
    for (Task& task : tasks) {
        task.id = next_id_++;
        ids.push_back(task.id);
    }
    results_.open(ids);
    hand_in(works_of(std::move(tasks)));
    return ids;
}

void EngineLoop::cancel(const std::vector<TaskId>& ids) {
    results_.close(ids);
    Task task;
    task.id = next_id_++;
    task.kind = TaskKind::cancel;
    task.cancelled = ids;
    // Behind what it cancels, which may not have been taken yet; the queue is emptied as a whole.
    hand_in({Work{.tasks = {std::move(task)}}});
}

/// Asked after the push: whoever ends the engine empties the queue last, so that nothing is left in between.
void EngineLoop::hand_in(std::vector<Work> works) {
    tasks_.push(std::move(works));
    if (is_over()) {
        refuse_queued(ErrorKind::unavailable, "The engine has stopped");
    }
}

bool EngineLoop::is_over() const {
    const EngineState now = status_.state();
    return is_stopping_ || now == EngineState::failed || now == EngineState::stopped;
}

void EngineLoop::refuse_queued(ErrorKind kind, const std::string& message) {
    for (const Work& work : tasks_.take_all()) {
        for (const Task& task : work.tasks) {
            if (task.kind != TaskKind::cancel) {
                results_.push(refusal(task, kind, message));
            }
        }
    }
}

void EngineLoop::sleep() {
    if (status_.state() != EngineState::ready) {
        return;
    }
    wants_sleep_ = true;
    tasks_.wake();
    status_.wait([this](EngineState now) { return now != EngineState::ready || !wants_sleep_; });
}

bool EngineLoop::wake() {
    if (status_.state() == EngineState::sleeping) {
        wants_wake_ = true;
        tasks_.wake();
    }
    const EngineState reached = status_.wait([this](EngineState now) {
        return now != EngineState::waking && !(now == EngineState::sleeping && wants_wake_);
    });
    return reached == EngineState::ready;
}

// Decode thread

void EngineLoop::run() {
    idle_since_ = now_us();
    while (!is_stopping_ && status_.state() != EngineState::failed) {
        try {
            step();
        } catch (const std::exception& problem) {
            recover(problem);
        }
    }
    end();
    const std::lock_guard lock(lifecycle_);
    has_ended_ = true;
    lifecycle_changed_.notify_all();
}

void EngineLoop::step() {
    if (model_.is_in_memory()) {
        work();
    } else {
        rest();
        idle_since_ = now_us();
    }
}

void EngineLoop::work() {
    if (model_.scheduler().cycle()) {
        n_failed_cycles_ = 0;
        idle_since_ = now_us();
        if (model_.scheduler().is_lost()) {
            fail("The device of this engine fails every computation");
        }
        return;
    }
    const std::optional<Micros> left_us = patience();
    if (wants_sleep_ || (left_us.has_value() && *left_us <= 0)) {
        fall_asleep();
    } else {
        tasks_.wait(left_us);
    }
}

/// How long an idle engine stays awake; none: for ever.
std::optional<Micros> EngineLoop::patience() const {
    const std::int64_t sleep_idle_s = model_.params().sleep_idle_s;
    if (sleep_idle_s < 0) {
        return std::nullopt;
    }
    // Whoever woke it has not sent its task yet.
    return idle_since_ + std::max<Micros>(sleep_idle_s * us_per_s, least_awake_us) - now_us();
}

/// Asleep until somebody wants the model; cancels alone don't wake it.
void EngineLoop::rest() {
    if (wants_wake_ || tasks_.settle_cancels()) {
        wake_up();
    } else {
        tasks_.wait(std::nullopt);
    }
}

void EngineLoop::fall_asleep() {
    model_.put_to_sleep();
    wants_sleep_ = false;
    wants_wake_ = false;
    model_.enter(EngineState::sleeping);
}

void EngineLoop::wake_up() {
    model_.enter(EngineState::waking);
    wants_sleep_ = false;
    wants_wake_ = false;
    try {
        load_model();
        model_.enter(EngineState::ready);
    } catch (const std::exception& problem) {
        model_.enter(EngineState::sleeping);
        refuse_queued(ErrorKind::unavailable,
                      std::string("The model could not be loaded again: ") + problem.what());
    }
}

/// After a cycle that threw: whoever waits is told, and no memory is trusted.
void EngineLoop::recover(const std::exception& problem) {
    try {
        model_.log(log_error, std::string("a cycle of the decode thread failed: ") + problem.what());
        if (model_.is_in_memory()) {
            DecodeState& state = model_.scheduler().state();
            model_.scheduler().fail_all(ErrorKind::server,
                                        std::string("The engine failed: ") + problem.what());
            for (Slot& slot : state.slots) {
                state.clear(slot);
            }
        }
        model_.publish();
    } catch (const std::exception&) {
        n_failed_cycles_ = max_failed_cycles;
    }
    if (++n_failed_cycles_ >= max_failed_cycles) {
        fail("The engine failed in " + std::to_string(max_failed_cycles) + " cycles in a row");
    }
}

/// The decode thread ends.
void EngineLoop::fail(std::string reason) {
    failure_ = std::move(reason);
    model_.enter(EngineState::failed);
}

}  // namespace paddock
