#include "core/result_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace paddock {

void ResultQueue::open(const std::vector<TaskId>& ids) {
    const std::lock_guard lock(mutex_);
    for (const TaskId id : ids) {
        open_.try_emplace(id);
    }
}

void ResultQueue::close(const std::vector<TaskId>& ids) {
    const std::lock_guard lock(mutex_);
    std::size_t closed = 0;
    for (const TaskId id : ids) {
        closed += open_.erase(id);
    }
    if (closed == 0) {
        return;
    }
    std::erase_if(results_,
                  [&](const Result& result) { return std::ranges::find(ids, result.id) != ids.end(); });
    // Erasing inside a deque moves its elements.
    for (auto& [id, waiting] : open_) {
        waiting.newest = nullptr;
    }
    for (Result& result : results_) {
        const auto found = open_.find(result.id);
        if (found != open_.end() && !result.is_last()) {
            found->second.newest = &result;
        }
    }
}

void ResultQueue::push(Result result) {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(result.id);
    if (found == open_.end()) {
        return;
    }
    Waiting& waiting = found->second;
    const bool can_merge = waiting.partials >= max_waiting_partials && waiting.newest != nullptr;
    if (!result.is_last() && can_merge) {
        merge_partial(*waiting.newest, std::move(result));
        return;
    }
    const bool was_empty = results_.empty();
    const bool is_last = result.is_last();
    results_.push_back(std::move(result));
    if (is_last) {
        // It may still wait in the queue, and nothing of the task comes after it.
        open_.erase(found);
    } else {
        ++waiting.partials;
        waiting.newest = &results_.back();
    }
    if (was_empty) {
        notifier_.signal();
        arrived_.notify_one();
    }
}

std::vector<Result> ResultQueue::take(std::size_t max, bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) {
        arrived_.wait(lock, [&] { return !results_.empty() || is_shut_; });
    }
    const auto count = static_cast<std::ptrdiff_t>(std::min(max, results_.size()));
    std::vector<Result> taken(std::make_move_iterator(results_.begin()),
                              std::make_move_iterator(results_.begin() + count));
    results_.erase(results_.begin(), results_.begin() + count);
    for (const Result& result : taken) {
        const auto found = open_.find(result.id);
        if (found == open_.end() || result.is_last()) {
            continue;
        }
        if (--found->second.partials == 0) {
            found->second.newest = nullptr;
        }
    }
    // The descriptor stays readable for as long as anything waits.
    if (results_.empty()) {
        notifier_.drain();
    }
    return taken;
}

void ResultQueue::shut() {
    const std::lock_guard lock(mutex_);
    is_shut_ = true;
    arrived_.notify_all();
    notifier_.signal();
}

void merge_partial(Result& into, Result&& later) {
    // Grown at the end: a reader that never comes must not make this quadratic.
    std::string text = std::move(into.text);
    std::vector<Token> tokens = std::move(into.tokens);
    std::vector<TokenRecord> records = std::move(into.records);
    text += later.text;
    tokens.insert(tokens.end(), later.tokens.begin(), later.tokens.end());
    std::ranges::move(later.records, std::back_inserter(records));
    // A partial with text is none of progress, whatever it was merged with.
    const bool is_progress = into.is_progress && later.is_progress;
    into = std::move(later);
    into.text = std::move(text);
    into.tokens = std::move(tokens);
    into.records = std::move(records);
    into.is_progress = is_progress;
}

}  // namespace paddock
