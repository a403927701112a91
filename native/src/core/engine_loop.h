// The life of an engine: what is handed in and out, the decode thread, its sleep, its failures and its end
// (10 §1-4, §21-22). Engine forwards here.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/engine_status.h"
#include "core/model_host.h"
#include "core/params.h"
#include "core/resident_model.h"
#include "core/result.h"
#include "core/result_queue.h"
#include "core/task.h"
#include "core/task_queue.h"

namespace paddock {

/// Each member function does what Engine says of its own; any thread.
class EngineLoop {
  public:
    EngineLoop(EngineParams params, std::unique_ptr<ModelHost> host);
    ~EngineLoop();
    EngineLoop(const EngineLoop&) = delete;
    EngineLoop& operator=(const EngineLoop&) = delete;

    void load();
    void start();
    bool shutdown(std::int64_t timeout_ms);

    std::vector<TaskId> submit(std::vector<Task> tasks);
    void cancel(const std::vector<TaskId>& ids);
    std::vector<Result> poll(std::size_t max, bool wait) { return results_.take(max, wait); }
    int notify_fd() const { return results_.descriptor(); }
    const EngineStatus& status() const { return status_; }

    void sleep();
    bool wake();

  private:
    // Of the decode thread.
    void run();
    void step();
    void work();
    void rest();
    void wake_up();
    void fall_asleep();
    std::optional<Micros> patience() const;
    void recover(const std::exception& problem);
    void fail(std::string reason);
    void end();

    void load_model();
    void set_loading(bool is_loading);
    void stop();
    void hand_in(std::vector<Work> works);
    bool is_over() const;
    void refuse_queued(ErrorKind kind, const std::string& message);

    TaskQueue tasks_;
    ResultQueue results_;
    EngineStatus status_;
    ResidentModel model_;
    std::atomic<bool> is_stopping_ = false;
    std::atomic<bool> wants_sleep_ = false;
    std::atomic<bool> wants_wake_ = false;
    std::atomic<TaskId> next_id_ = 0;

    // Of the decode thread.
    Micros idle_since_ = 0;
    std::int32_t n_failed_cycles_ = 0;
    /// Why the state is `failed`.
    std::string failure_;

    /// Guards what follows: whose turn it is with the model, the loader's, the decode thread's or nobody's.
    std::mutex lifecycle_;
    std::condition_variable lifecycle_changed_;
    bool is_loading_ = false;
    bool has_ended_ = false;
    std::thread thread_;
};

}  // namespace paddock
