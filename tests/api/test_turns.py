"""Turns at looking at manifests: in order, few at once, and none for those who have left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from framework.api import turns as module
from framework.api.errors import ApiError
from framework.api.turns import Turns
from tests.support.waiting import eventually


def request_of(left: Callable[[], bool] = lambda: False) -> Request:
    """A request without a body, whose client leaves when `left` says so."""

    async def receive() -> Message:
        while not left():
            await asyncio.sleep(0.001)
        return {"type": "http.disconnect"}

    return Request({"type": "http", "method": "GET", "path": "/", "headers": []}, receive)


class Work:
    """What is done in turns, each as long as it is told."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.begun: list[int] = []
        self.end = asyncio.Event()

    async def do(self, number: int, request: Request) -> None:
        async with self.turns.alone(request, str(number)):
            self.begun.append(number)
            await self.end.wait()

    def start(self, number: int, request: Request | None = None) -> asyncio.Task[None]:
        return asyncio.create_task(self.do(number, request or request_of()))


async def test_so_many_work_at_once_and_the_others_wait_in_order() -> None:
    work = Work(Turns(at_once=2, most=5))
    tasks = [work.start(number) for number in range(5)]
    await eventually(lambda: len(work.begun) == 2)
    work.end.set()
    await asyncio.gather(*tasks)
    assert work.begun == [0, 1, 2, 3, 4]


async def test_one_too_many_is_told_to_come_again_and_later_has_room() -> None:
    work = Work(Turns(at_once=1, most=2))
    tasks = [work.start(number) for number in range(2)]
    await eventually(lambda: work.begun == [0])
    with pytest.raises(ApiError) as refused:
        await work.do(2, request_of())
    assert (refused.value.status, refused.value.code) == (503, "too_busy")
    assert refused.value.headers["Retry-After"] == "2"
    work.end.set()
    await asyncio.gather(*tasks)
    await work.do(3, request_of())
    assert work.begun == [0, 1, 3]


async def test_who_leaves_while_waiting_has_no_turn_and_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    has_left = False
    work = Work(Turns(at_once=1, most=2))
    first, second = work.start(0), work.start(1, request_of(lambda: has_left))
    await eventually(lambda: work.begun == [0])
    has_left = True
    with pytest.raises(ClientDisconnect):
        await second
    third = work.start(2)
    work.end.set()
    await asyncio.gather(first, third)
    assert work.begun == [0, 2]


async def test_a_turn_that_is_given_to_who_was_cancelled_goes_on_to_the_next() -> None:
    work = Work(Turns(at_once=1, most=3))
    first, second, third = (work.start(number) for number in range(3))
    await eventually(lambda: work.begun == [0])
    work.end.set()
    second.cancel()
    await asyncio.gather(first, third)
    assert work.begun == [0, 2]


async def test_one_key_leaves_room_for_the_others() -> None:
    turns = Turns(most=3, most_of_one=2)
    with turns.place("a"), turns.place("a"):
        with pytest.raises(ApiError), turns.place("a"):
            pass
        with turns.place("b"), pytest.raises(ApiError), turns.place("c"):
            pass
    with turns.place("a"):
        pass
