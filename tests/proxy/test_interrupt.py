"""Stopping work from outside without mistaking it for any other cancel (08 §4.3-4.4)."""

from __future__ import annotations

import asyncio

import pytest

from framework.proxy.interrupt import Interrupted, InterruptScope


async def interrupt_soon(scope: InterruptScope) -> None:
    await asyncio.sleep(0)
    scope.interrupt("cancelled")


async def test_an_interrupt_ends_the_work_with_its_cause() -> None:
    scope = InterruptScope()
    stopper = asyncio.create_task(interrupt_soon(scope))
    with pytest.raises(Interrupted) as caught, scope:
        await asyncio.sleep(60)
    await stopper
    assert caught.value.cause == "cancelled"


async def test_the_first_cause_wins() -> None:
    scope = InterruptScope()
    scope.interrupt("client_gone")
    scope.interrupt("cancelled")
    assert scope.cause == "client_gone"


async def test_work_that_was_stopped_before_it_began_does_not_begin() -> None:
    scope = InterruptScope()
    scope.interrupt("client_gone")
    begun = False
    with pytest.raises(Interrupted), scope:
        begun = True
    assert not begun


async def test_clean_up_runs_before_the_interrupt_is_seen() -> None:
    scope = InterruptScope()
    cleaned = False
    stopper = asyncio.create_task(interrupt_soon(scope))
    with pytest.raises(Interrupted), scope:
        try:
            await asyncio.sleep(60)
        finally:
            cleaned = True
    await stopper
    assert cleaned


async def test_an_error_after_the_mark_is_an_echo_of_it() -> None:
    scope = InterruptScope()
    stopper = asyncio.create_task(interrupt_soon(scope))
    with pytest.raises(Interrupted), scope:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise OSError("client is closed") from None
    await stopper


async def test_the_task_can_go_on_after_an_interrupt() -> None:
    scope = InterruptScope()
    stopper = asyncio.create_task(interrupt_soon(scope))
    with pytest.raises(Interrupted), scope:
        await asyncio.sleep(60)
    await stopper
    async with asyncio.timeout(5):
        await asyncio.sleep(0.001)


async def test_a_cancel_from_elsewhere_stays_a_cancel() -> None:
    scope = InterruptScope()

    async def work() -> None:
        with scope:
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancel_from_elsewhere_wins_over_an_interrupt() -> None:
    scope = InterruptScope()

    async def work() -> None:
        with scope:
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    scope.interrupt("cancelled")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_interrupt_after_the_work_changes_nothing() -> None:
    scope = InterruptScope()
    with scope:
        pass
    scope.interrupt("client_gone")
    await asyncio.sleep(0)


async def test_errors_of_the_work_pass_through() -> None:
    with pytest.raises(ValueError, match="x"), InterruptScope():
        raise ValueError("x")
