#include "core/task_queue.h"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace paddock {

namespace {

bool is_cancel(const Work& work) { return work.tasks.front().kind == TaskKind::cancel; }

/// A parent with those of `tasks` that it names.
Work family_of(Task parent, const std::vector<Task>& tasks) {
    Work work;
    for (TaskId& position : parent.children) {
        Task child = tasks[static_cast<std::size_t>(position)];
        child.parent = parent.id;
        child.choice = static_cast<std::uint32_t>(work.tasks.size()) + 1;
        child.tokens = parent.tokens;
        position = child.id;
        work.tasks.push_back(std::move(child));
    }
    work.tasks.insert(work.tasks.begin(), std::move(parent));
    return work;
}

}  // namespace

std::vector<Work> works_of(std::vector<Task> tasks) {
    std::vector<bool> is_child(tasks.size(), false);
    for (const Task& task : tasks) {
        for (const TaskId position : task.children) {
            is_child.at(static_cast<std::size_t>(position)) = true;
        }
    }
    std::vector<Work> works;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (!is_child[i]) {
            works.push_back(family_of(std::move(tasks[i]), tasks));
        }
    }
    return works;
}

void TaskQueue::push(std::vector<Work> works) {
    const std::lock_guard lock(mutex_);
    std::ranges::move(works, std::back_inserter(works_));
    changed_.notify_one();
}

std::deque<Work> TaskQueue::take_all() {
    const std::lock_guard lock(mutex_);
    return std::exchange(works_, {});
}

bool TaskQueue::empty() const {
    const std::lock_guard lock(mutex_);
    return works_.empty();
}

bool TaskQueue::settle_cancels() {
    const std::lock_guard lock(mutex_);
    std::deque<Work> kept;
    for (Work& work : works_) {
        if (!is_cancel(work)) {
            kept.push_back(std::move(work));
            continue;
        }
        const std::vector<TaskId>& ids = work.tasks.front().cancelled;
        std::erase_if(kept, [&](const Work& waiting) {
            return std::ranges::find(ids, waiting.tasks.front().id) != ids.end();
        });
    }
    works_ = std::move(kept);
    return !works_.empty();
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
