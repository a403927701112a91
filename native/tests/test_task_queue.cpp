// Tasks on their way to the decode thread.
#include <doctest/doctest.h>

#include <stdexcept>

#include "core/task_queue.h"

using namespace paddock;

namespace {

Task task_of(TaskId id, std::vector<TaskId> children = {}) {
    Task task;
    task.id = id;
    task.children = std::move(children);
    return task;
}

Work cancel_of(std::vector<TaskId> ids) {
    Task task;
    task.kind = TaskKind::cancel;
    task.cancelled = std::move(ids);
    return {.tasks = {std::move(task)}};
}

}  // namespace

TEST_CASE("tasks of a call that name nobody are works of their own, in order") {
    const std::vector<Work> works = works_of({task_of(7), task_of(8)});
    REQUIRE(works.size() == 2);
    CHECK(works[0].tasks.front().id == 7);
    CHECK(works[1].tasks.front().id == 8);
}

TEST_CASE("a parent stands before its children, which are named by id") {
    const std::vector<Work> works = works_of({task_of(7, {1, 2}), task_of(8), task_of(9)});
    REQUIRE(works.size() == 1);
    const std::vector<Task>& tasks = works[0].tasks;
    REQUIRE(tasks.size() == 3);
    CHECK(tasks[0].children == std::vector<TaskId>{8, 9});
    CHECK(tasks[1].id == 8);
    CHECK(tasks[2].parent == 7);
}

TEST_CASE("children get the prompt of their parent, and the number of their choice") {
    Task parent = task_of(7, {1, 2});
    parent.tokens = {5, 6};
    const std::vector<Work> works = works_of({parent, task_of(8), task_of(9)});
    CHECK(works[0].tasks[2].tokens == parent.tokens);
    CHECK(works[0].tasks[2].choice == 2);
}

TEST_CASE("a position that isn't one is refused") {
    CHECK_THROWS_AS(works_of({task_of(7, {1})}), std::out_of_range);
    CHECK_THROWS_AS(works_of({task_of(7, {-1})}), std::out_of_range);
}

TEST_CASE("a cancel takes what it names out of the queue, and itself") {
    TaskQueue queue;
    queue.push(works_of({task_of(1), task_of(2)}));
    queue.push({cancel_of({1})});
    CHECK(queue.settle_cancels());
    const std::deque<Work> left = queue.take_all();
    REQUIRE(left.size() == 1);
    CHECK(left.front().tasks.front().id == 2);
}

TEST_CASE("cancels alone leave nothing to do") {
    TaskQueue queue;
    queue.push(works_of({task_of(1)}));
    queue.push({cancel_of({1, 5})});
    CHECK_FALSE(queue.settle_cancels());
    CHECK(queue.empty());
}
