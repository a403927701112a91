"""Results from the core's threads reach the request that waits for them (10 §1.5-1.6, 12 §1.8)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from framework.nativeserver.bridge import EngineBridge, FellAsleep, Submission
from framework.nativeserver.errors import ApiError
from framework.nativeserver.partials import MOST_WAITING
from tests.nativeserver.generation_world import final, partial
from tests.nativeserver.small_world import MODULE, SmallCore


@pytest.fixture
async def core() -> AsyncIterator[SmallCore]:
    scripted = SmallCore()
    yield scripted
    scripted.close()


@pytest.fixture
async def bridge(core: SmallCore) -> AsyncIterator[EngineBridge]:
    async with EngineBridge(core, MODULE) as running:  # type: ignore[arg-type]
        yield running


def submitted(bridge: EngineBridge, count: int = 1) -> Submission:
    tasks = [bridge.new_task() for _ in range(count)]
    for index, task in enumerate(tasks):
        task.index = index
    return bridge.submit(tasks)


async def everything(submission: Submission) -> list[Any]:
    results = []
    while submission.open:
        results.append(await submission.next(5))
    return results


async def test_results_of_another_thread_arrive_in_order(core: SmallCore, bridge: EngineBridge) -> None:
    submission = submitted(bridge)
    task = core.tasks[0]

    def decode() -> None:
        for number in range(100):
            core.push(partial(task, b"%d " % number))
        core.push(final(task, b"end"))

    thread = threading.Thread(target=decode)
    thread.start()
    results = await everything(submission)
    thread.join()
    assert [result.text for result in results] == [*(b"%d " % number for number in range(100)), b"end"]


async def test_every_request_gets_its_own_results(core: SmallCore, bridge: EngineBridge) -> None:
    first, second = submitted(bridge), submitted(bridge, 2)
    core.push(*(final(task, b"%d" % task.id) for task in reversed(core.tasks)))
    assert [result.id for result in await everything(first)] == list(first.ids)
    results = await everything(second)
    assert [second.position(result) for result in results] == [1, 0]


async def test_nothing_in_time_is_none(bridge: EngineBridge) -> None:
    submission = submitted(bridge)
    assert await submission.next(0.01) is None
    assert submission.open
    submission.cancel()


async def test_a_submission_is_open_until_its_last_result_was_read(
    core: SmallCore, bridge: EngineBridge
) -> None:
    submission = submitted(bridge)
    core.push(final(core.tasks[0]))
    while not submission.ready_now():
        await asyncio.sleep(0)
    assert submission.open
    assert await submission.next() is not None
    assert not submission.open
    assert await submission.next() is None


async def test_a_slow_reader_gets_joined_partials_and_loses_nothing(
    core: SmallCore, bridge: EngineBridge
) -> None:
    slow, other = submitted(bridge), submitted(bridge)
    task = core.tasks[0]
    texts = [b"%d," % number for number in range(5000)]
    core.push(*(partial(task, text, tokens=[number], n_decoded=number) for number, text in enumerate(texts)))
    core.push(final(core.tasks[1]), final(task, b"end"))
    await everything(other)
    results = await everything(slow)
    assert len(results) == MOST_WAITING + 1
    assert b"".join(result.text for result in results) == b"".join(texts) + b"end"
    assert [token for result in results for token in result.tokens] == list(range(5000))
    assert results[-2].n_decoded == 4999


async def test_partials_are_told_one_by_one_again_once_the_reader_caught_up(
    core: SmallCore, bridge: EngineBridge
) -> None:
    submission = submitted(bridge)
    task = core.tasks[0]
    core.push(*(partial(task, b"a") for _ in range(MOST_WAITING + 50)))
    for _ in range(MOST_WAITING):
        await submission.next(5)
    core.push(partial(task, b"b"), partial(task, b"c"))
    results = [await submission.next(5), await submission.next(5)]
    assert [result.text for result in results if result is not None] == [b"b", b"c"]
    submission.cancel()


async def test_many_results_leave_turns_for_other_work(core: SmallCore, bridge: EngineBridge) -> None:
    submission = submitted(bridge)
    core.push(*(partial(core.tasks[0], b"x") for _ in range(20_000)), final(core.tasks[0]))
    turns = 0
    while submission.open:
        await submission.next(5)
        turns += 1
    assert turns >= 2
    assert core.poll(1, False) == []


async def test_a_cancel_names_what_still_runs_and_drops_what_comes_later(
    core: SmallCore, bridge: EngineBridge
) -> None:
    submission = submitted(bridge, 2)
    core.push(final(core.tasks[0]))
    await submission.next(5)
    submission.cancel()
    submission.cancel()
    assert core.cancelled == [submission.ids[1]]
    core.push(partial(core.tasks[1], b"late"))
    await asyncio.sleep(0.02)
    assert not submission.open
    assert await submission.next() is None


async def test_a_cancel_ends_a_wait(bridge: EngineBridge) -> None:
    submission = submitted(bridge)
    waiting = asyncio.create_task(submission.next())
    await asyncio.sleep(0)
    submission.cancel()
    assert await asyncio.wait_for(waiting, 5) is None


async def test_the_end_of_the_bridge_is_an_error_for_whoever_waits(core: SmallCore) -> None:
    async with EngineBridge(core, MODULE) as bridge:  # type: ignore[arg-type]
        submission = submitted(bridge, 2)
        core.push(final(core.tasks[0], b"still told"))
    first, second = await everything(submission)
    assert (first.text, second.kind, second.error, second.index) == (b"still told", "error", "unavailable", 1)
    late = submitted(bridge)
    assert [result.error for result in await everything(late)] == ["unavailable"]


async def test_one_wake_serves_all_who_wait(core: SmallCore, bridge: EngineBridge) -> None:
    core.state_ = "sleeping"
    core.may_wake.clear()
    waiting = [asyncio.create_task(bridge.ready_or_wake()) for _ in range(50)]
    await asyncio.sleep(0.02)
    waiting[0].cancel()
    core.may_wake.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    await asyncio.gather(*waiting[1:])
    assert core.wakes == 1


async def test_a_failed_wake_is_tried_again_by_the_next(core: SmallCore, bridge: EngineBridge) -> None:
    core.state_, core.wake_result = "sleeping", False
    with pytest.raises(ApiError) as caught:
        await bridge.ready_or_wake()
    assert caught.value.status == 503
    core.wake_result = True
    await bridge.ready_or_wake()
    assert core.wakes == 2


@pytest.mark.parametrize(
    ("state", "status"), [("fresh", 503), ("loading", 503), ("failed", 500), ("stopped", 503)]
)
async def test_an_engine_without_a_model_is_told_as_such(
    core: SmallCore, bridge: EngineBridge, state: str, status: int
) -> None:
    core.state_ = state
    with pytest.raises(ApiError) as caught:
        await bridge.ready_or_wake()
    assert (caught.value.status, core.wakes) == (status, 0)


async def test_a_vocabulary_that_left_memory_is_an_error_to_try_again(
    core: SmallCore, bridge: EngineBridge
) -> None:
    core.state_ = "sleeping"
    with pytest.raises(FellAsleep):
        bridge.tokenize("a", add_special=False, parse_special=False)
    with pytest.raises(FellAsleep):
        bridge.detokenize([5])
