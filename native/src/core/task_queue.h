// Tasks on their way from the HTTP side to the decode thread (10 §4.3).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/task.h"
#include "core/types.h"

namespace paddock {

/// What is dispatched as one: a task, or a parent with its children behind it (10 §4.4).
struct Work {
    std::vector<Task> tasks;
};

class TaskQueue {
  public:
    void push(std::vector<Work> works);
    /// Before everything that waits.
    void push_front(Work work);
    /// Everything there is, oldest first.
    std::deque<Work> take_all();
    bool empty() const;

    /// Blocks until there is work, `wake` was called, or the time is up; `timeout_us` none: for as long as it
    /// takes.
    void wait(std::optional<Micros> timeout_us);
    /// Ends the wait that is under way, or the next one.
    void wake();

  private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work> works_;
    bool is_woken_ = false;
};

}  // namespace paddock
