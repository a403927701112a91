"""Long texts are tokenised a few at a time, within bounds; nothing else waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.types import Message

from framework.nativeserver.bridge import EngineBridge
from framework.nativeserver.client_watch import ClientGone
from framework.nativeserver.errors import ApiError
from framework.nativeserver.text_work import AT_ONCE, MOST_RUNNING, MOST_TEXT, MOST_WAITING, TextWork
from tests.nativeserver.small_world import MODULE, SmallCore, SmallWorld, small_world
from tests.proxy.asgi_client import start_call

LONG = AT_ONCE + 1
PATIENCE_S = 5.0


class Client:
    """Stays until it goes."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def receive(self) -> Message:
        """ASGI."""
        await self.gone.wait()
        return {"type": "http.disconnect"}


class Tokenizer:
    """Work that ends when a test says so."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.may_end = threading.Semaphore(0)

    def __call__(self, number: int) -> int:
        self.began.append(number)
        assert self.may_end.acquire(timeout=PATIENCE_S)
        return number

    async def until(self, count: int) -> None:
        """Until so many have begun."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.began) < count:
                await asyncio.sleep(0.001)


@pytest.fixture
async def tokenizer() -> AsyncIterator[Tokenizer]:
    made = Tokenizer()
    yield made
    made.may_end.release(100)


def started(work: TextWork, tokenizer: Tokenizer, *sizes: int) -> list[asyncio.Task[int]]:
    return [
        asyncio.create_task(work.run(Client().receive, size, tokenizer, number))
        for number, size in enumerate(sizes)
    ]


async def test_a_short_text_is_done_at_once_on_the_loop() -> None:
    work = TextWork()
    assert await work.run(Client().receive, AT_ONCE, threading.current_thread) is threading.main_thread()
    assert await work.run(Client().receive, LONG, threading.current_thread) is not threading.main_thread()


async def test_a_few_run_and_the_shortest_is_next(tokenizer: Tokenizer) -> None:
    work = TextWork()
    tasks = started(work, tokenizer, *[LONG] * MOST_RUNNING, LONG + 9, LONG + 5, LONG + 7)
    await tokenizer.until(MOST_RUNNING)
    await asyncio.sleep(0.02)
    assert tokenizer.began == list(range(MOST_RUNNING))
    for count in range(MOST_RUNNING + 1, len(tasks) + 1):
        tokenizer.may_end.release()
        await tokenizer.until(count)
    assert tokenizer.began[MOST_RUNNING:] == [MOST_RUNNING + 1, MOST_RUNNING + 2, MOST_RUNNING]
    tokenizer.may_end.release(MOST_RUNNING)
    assert sorted(await asyncio.gather(*tasks)) == list(range(len(tasks)))
    assert not work.is_busy


async def test_what_waits_is_bounded(tokenizer: Tokenizer) -> None:
    work = TextWork()
    tasks = started(work, tokenizer, *[MOST_TEXT] * (MOST_WAITING // MOST_TEXT))
    await tokenizer.until(MOST_RUNNING)
    with pytest.raises(ApiError) as caught:
        await work.run(Client().receive, LONG, tokenizer, 99)
    assert caught.value.status == 503
    tokenizer.may_end.release(100)
    await asyncio.gather(*tasks)
    assert await work.run(Client().receive, MOST_TEXT, lambda: 5) == 5


async def test_a_text_beyond_the_limit_is_refused_at_once(tokenizer: Tokenizer) -> None:
    with pytest.raises(ApiError) as caught:
        await TextWork().run(Client().receive, MOST_TEXT + 1, tokenizer, 0)
    assert (caught.value.status, tokenizer.began) == (400, [])


async def test_what_nobody_waits_for_any_more_is_not_begun(tokenizer: Tokenizer) -> None:
    work = TextWork()
    tasks = started(work, tokenizer, *[LONG] * MOST_RUNNING)
    await tokenizer.until(MOST_RUNNING)
    clients = [Client() for _ in range(5)]
    left = [asyncio.create_task(work.run(client.receive, LONG, tokenizer, 99)) for client in clients]
    await asyncio.sleep(0)
    for client in clients:
        client.gone.set()
    ended = await asyncio.gather(*left, return_exceptions=True)
    assert all(isinstance(error, ClientGone) for error in ended)
    tokenizer.may_end.release(100)
    await asyncio.gather(*tasks)
    assert await work.run(Client().receive, LONG, lambda: 5) == 5
    assert 99 not in tokenizer.began


async def test_an_abandoned_text_keeps_its_place_until_it_ends(tokenizer: Tokenizer) -> None:
    work, client = TextWork(), Client()
    running = [
        asyncio.create_task(work.run(client.receive, LONG, tokenizer, number))
        for number in range(MOST_RUNNING)
    ]
    await tokenizer.until(MOST_RUNNING)
    client.gone.set()
    await asyncio.gather(*running, return_exceptions=True)
    (next_one,) = started(work, tokenizer, LONG)
    await asyncio.sleep(0.02)
    assert (work.is_busy, len(tokenizer.began)) == (True, MOST_RUNNING)
    tokenizer.may_end.release(100)
    assert await next_one == 0


async def test_a_failure_is_told_and_makes_room() -> None:
    def fail() -> None:
        raise ValueError("no")

    work = TextWork()
    for _ in range(MOST_RUNNING + 1):
        with pytest.raises(ValueError, match="no"):
            await work.run(Client().receive, LONG, fail)
    assert not work.is_busy


async def test_a_wake_waits_for_no_other_thread() -> None:
    loop, may_end = asyncio.get_running_loop(), threading.Event()
    busy = [loop.run_in_executor(None, may_end.wait, PATIENCE_S) for _ in range(64)]
    core = SmallCore()
    core.state_ = "sleeping"
    try:
        async with EngineBridge(core, MODULE) as bridge, asyncio.timeout(PATIENCE_S / 2):  # type: ignore[arg-type]
            await bridge.ready_or_wake()
        assert core.state() == "ready"
    finally:
        may_end.set()
        await asyncio.gather(*busy)
        core.close()


def _blocked(world: SmallWorld, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Long texts do not end before the event is set."""
    inner, may_end = world.core.tokenize, threading.Event()

    def slow(text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        if len(text) > AT_ONCE:
            may_end.wait(PATIENCE_S)
        return inner(text, add_special, parse_special)

    monkeypatch.setattr(world.core, "tokenize", slow)
    return may_end


async def test_abandoned_texts_hold_up_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_world() as world:
        may_end = _blocked(world, monkeypatch)
        calls = [start_call(world.app, "/tokenize", {"content": " " * (4 * LONG)}) for _ in range(40)]
        await asyncio.sleep(0.05)
        for call in calls:
            call.gone.set()
        for call in calls:
            await call.finished()
        template: dict[str, Any] = {
            "messages": [{"role": "user", "content": "hi"}],
            "response_format": {"type": "json_object"},
        }
        assert (await world.post("/apply-template", template)).json() == {"prompt": "hi"}
        assert (await world.post("/tokenize", {"content": "ab"})).json() == {"tokens": [97, 98]}
        assert not may_end.is_set()
        may_end.set()


@pytest.mark.parametrize("path", ["/tokenize", "/infill", "/v1/messages/count_tokens"])
async def test_every_route_that_tokenises_has_the_limit(path: str) -> None:
    text = "x" * (MOST_TEXT + 1)
    async with small_world() as world:
        meta = world.core.meta_
        meta.fim_prefix = meta.fim_suffix = meta.fim_middle = 5
        body = {
            "content": text,
            "input_prefix": text,
            "input_suffix": "",
            "messages": [{"role": "user", "content": text}],
        }
        answer = await world.post(path, body)
        assert answer.status_code == 400
        assert str(MOST_TEXT) in answer.json()["error"]["message"]
