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

/// Tasks of one call that have their ids, as works in order. Positions in `children` become ids, and children
/// get their parent, its prompt and the number of their choice. Throws std::out_of_range for a position that
/// isn't one.
std::vector<Work> works_of(std::vector<Task> tasks);

class TaskQueue {
  public:
    void push(std::vector<Work> works);
    /// Everything there is, oldest first. A wake stays: whoever called it wants the next wait to end.
    std::deque<Work> take_all();
    bool empty() const;
    /// Drops cancels with what they name; whether anything is left.
    bool settle_cancels();

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
