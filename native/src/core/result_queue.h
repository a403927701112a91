// Results on their way from the decode thread to the HTTP side (10 §1.5-1.6, §4.6).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/notifier.h"
#include "core/result.h"

namespace paddock {

/// Partials of one task that may wait before further ones are merged into the newest.
inline constexpr std::size_t max_waiting_partials = 256;

class ResultQueue {
  public:
    /// Results of `ids` are taken from now on.
    void open(const std::vector<TaskId>& ids);
    /// Nothing of these is given out any more; what waits is dropped.
    void close(const std::vector<TaskId>& ids);

    /// Never blocks. A result of a task that isn't open is dropped; a last result closes its task.
    void push(Result result);

    /// Up to `max`; with `wait` blocks until there is one or the queue is shut.
    std::vector<Result> take(std::size_t max, bool wait);
    /// Ends every wait, for good.
    void shut();

    int descriptor() const { return notifier_.descriptor(); }

  private:
    struct Waiting {
        std::size_t partials = 0;
        /// The newest partial in the queue; elements of a deque stay where they are while its ends change.
        Result* newest = nullptr;
    };

    std::mutex mutex_;
    std::condition_variable arrived_;
    Notifier notifier_;
    std::deque<Result> results_;
    std::unordered_map<TaskId, Waiting> open_;
    bool is_shut_ = false;
};

/// Appends a later partial: text, tokens and records are joined, counters and timings replaced.
void merge_partial(Result& into, Result&& later);

}  // namespace paddock
