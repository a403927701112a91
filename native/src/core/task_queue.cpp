#include "core/task_queue.h"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace paddock {

void TaskQueue::push(std::vector<Work> works) {
    const std::lock_guard lock(mutex_);
    std::ranges::move(works, std::back_inserter(works_));
    changed_.notify_one();
}

void TaskQueue::push_front(Work work) {
    const std::lock_guard lock(mutex_);
    works_.push_front(std::move(work));
    changed_.notify_one();
}

std::deque<Work> TaskQueue::take_all() {
    const std::lock_guard lock(mutex_);
    is_woken_ = false;
    return std::exchange(works_, {});
}

bool TaskQueue::empty() const {
    const std::lock_guard lock(mutex_);
    return works_.empty();
}

void TaskQueue::wait(std::optional<Micros> timeout_us) {
    std::unique_lock lock(mutex_);
    const auto has_news = [&] { return !works_.empty() || is_woken_; };
    if (timeout_us.has_value()) {
        changed_.wait_for(lock, std::chrono::microseconds(*timeout_us), has_news);
    } else {
        changed_.wait(lock, has_news);
    }
    is_woken_ = false;
}

void TaskQueue::wake() {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
    changed_.notify_one();
}

}  // namespace paddock
