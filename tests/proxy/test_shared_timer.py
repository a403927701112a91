"""Waits with a limit that share one timer (`framework.proxy.patience`)."""

from __future__ import annotations

import asyncio
import time

import pytest

from framework.proxy.patience import HELD_UP_S, Patience

SHORT_S = 0.03
LONG_S = 60.0


async def test_a_wait_that_takes_too_long() -> None:
    patience = Patience()
    with pytest.raises(TimeoutError), patience.within(SHORT_S):
        await asyncio.sleep(LONG_S)
    assert patience.expired
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_a_wait_that_ends_in_time() -> None:
    patience = Patience()
    for _ in range(3):
        with patience.within(LONG_S):
            await asyncio.sleep(0)
    assert not patience.expired


async def test_waits_that_end_in_time_set_no_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, patience, set_at = asyncio.get_running_loop(), Patience(), []
    call_at = loop.call_at
    monkeypatch.setattr(
        loop, "call_at", lambda at, *rest, **more: set_at.append(at) or call_at(at, *rest, **more)
    )
    for _ in range(100):
        with patience.within(LONG_S):
            await asyncio.sleep(0)
    assert len(set_at) == 1


async def test_a_short_wait_after_a_long_one() -> None:
    with Patience().within(LONG_S):
        await asyncio.sleep(0)
    began = time.monotonic()
    with pytest.raises(TimeoutError), Patience().within(SHORT_S):
        await asyncio.sleep(LONG_S)
    assert time.monotonic() - began < LONG_S / 2


async def test_each_of_many_waits_has_its_own_limit() -> None:
    async def wait(limit_s: float, takes_s: float) -> str:
        try:
            with Patience().within(limit_s):
                await asyncio.sleep(takes_s)
        except TimeoutError:
            return "late"
        return "in time"

    waits = [wait(SHORT_S, LONG_S), wait(LONG_S, SHORT_S * 3), wait(SHORT_S * 2, LONG_S), wait(LONG_S, 0)]
    assert await asyncio.gather(*waits) == ["late", "in time", "late", "in time"]


async def test_a_limit_inside_another() -> None:
    outer, inner = Patience(), Patience()
    with pytest.raises(TimeoutError), outer.within(SHORT_S), inner.within(LONG_S):
        await asyncio.sleep(LONG_S)
    assert outer.expired
    assert not inner.expired


async def test_a_cancel_from_elsewhere_stays_a_cancel() -> None:
    async def wait() -> None:
        with Patience().within(LONG_S):
            await asyncio.sleep(LONG_S)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_fails_within_its_time_fails_as_it_does() -> None:
    with pytest.raises(KeyError), Patience().within(LONG_S):
        raise KeyError


async def test_the_time_in_which_the_loop_stood_still_blames_nobody() -> None:
    arrived = asyncio.get_running_loop().create_future()

    async def arrive() -> None:
        time.sleep(SHORT_S + 2 * HELD_UP_S)  # noqa: ASYNC251  what holds up an event loop
        await asyncio.sleep(HELD_UP_S / 4)
        arrived.set_result("a")

    task = asyncio.create_task(arrive())
    with Patience().within(SHORT_S):
        assert await arrived == "a"
    await task
