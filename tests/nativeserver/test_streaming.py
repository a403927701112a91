"""Streams: what is sent, when, and how they end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from framework.nativeserver import streaming
from framework.nativeserver.events import Event
from tests.nativeserver.generation_world import World, failure, final, generation_world, partial


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with generation_world() as made:
        made.engine.results = lambda task: []
        yield made


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(Event({"a": 1}), b'data: {"a":1}\n\n', id="plain"),
        pytest.param(Event({"a": 1}, "made"), b'event: made\ndata: {"a":1}\n\n', id="named"),
        pytest.param(Event({"a": "b\nc"}), b'data: {"a":"b\\nc"}\n\n', id="a newline stays inside"),
    ],
)
def test_an_event_is_written_in_one_way(event: Event, expected: bytes) -> None:
    assert streaming.event_bytes(event) == expected


async def test_the_headers_come_with_the_first_result_and_not_before(world: World) -> None:
    call = world.start("/completion", {"prompt": "a", "stream": True})
    (task,) = await world.submitted()
    await asyncio.sleep(0.02)
    assert call.messages == []
    world.engine.push(partial(task, b"x"))
    await call.until(b"data: ")
    assert call.status == 200
    assert call.headers["content-type"] == "text/event-stream"
    assert call.headers["x-accel-buffering"] == "no"
    assert "content-length" not in call.headers
    assert not call.ended
    world.engine.push(final(task))
    await call.finished()
    assert call.ended


async def test_every_result_is_sent_as_it_comes(world: World) -> None:
    call = world.start("/completion", {"prompt": "a", "stream": True})
    (task,) = await world.submitted()
    for text in (b"one", b"two", b"three"):
        world.engine.push(partial(task, text))
        await call.until(text)
    world.engine.push(final(task))
    await call.finished()
    assert "".join(event["content"] for event in call.events()) == "onetwothree"


async def test_results_of_one_turn_are_sent_together(world: World) -> None:
    call = world.start("/completion", {"prompt": "a", "stream": True})
    (task,) = await world.submitted()
    world.engine.push(*(partial(task, b"x") for _ in range(50)), final(task))
    await call.finished()
    assert len(call.events()) == 51
    assert len(call.messages) <= 4


async def test_events_of_several_tasks_mix_and_keep_their_order(world: World) -> None:
    call = world.start("/completion", {"prompt": ["a", "b"], "stream": True})
    one, two = await world.submitted(2)
    world.engine.push(partial(two, b"2"), partial(one, b"1"), final(two), partial(one, b"1b"), final(one))
    await call.finished()
    assert [(event["index"], event["content"]) for event in call.events()] == [
        (1, "2"),
        (0, "1"),
        (1, ""),
        (0, "1b"),
        (0, ""),
    ]


@pytest.mark.parametrize(("path", "has_done"), [("/completion", False), ("/v1/completions", True)])
async def test_only_some_flavours_end_with_done(world: World, path: str, has_done: bool) -> None:
    world.engine.results = lambda task: [partial(task, b"x"), final(task)]
    call = await world.post(path, {"prompt": "a", "stream": True})
    assert call.body.endswith(b"data: [DONE]\n\n") is has_done


async def test_an_error_after_two_chunks_is_an_event_and_the_end(world: World) -> None:
    world.engine.results = lambda task: [partial(task, b"a"), partial(task, b"b"), failure(task)]
    call = await world.post("/v1/completions", {"prompt": "a", "stream": True})
    assert call.status == 200
    assert json.loads(call.payloads()[-1]) == {
        "error": {"code": 500, "message": "broken", "type": "server_error"}
    }
    assert len(call.payloads()) == 3
    assert call.ended


async def test_an_error_of_one_task_ends_the_others(world: World) -> None:
    world.engine.results = lambda task: [failure(task)] if task.index == 1 else [partial(task, b"a")]
    call = await world.post("/completion", {"prompt": ["a", "b"], "stream": True})
    assert "error" in call.events()[-1]
    assert world.engine.cancelled == [1]


async def test_a_silent_stream_is_kept_alive_by_comments(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = world.start("/completion", {"prompt": "a", "stream": True, "sse_ping_interval": 1})
    (task,) = await world.submitted()
    await call.until(b":\n\n:\n\n")
    assert call.status == 200
    world.engine.push(final(task, b"late"))
    await call.finished()
    assert call.events()[-1]["content"] == "late"


async def test_an_error_after_a_ping_is_an_event(world: World) -> None:
    call = world.start("/completion", {"prompt": "a", "stream": True, "sse_ping_interval": 1})
    (task,) = await world.submitted()
    await call.until(b":\n\n")
    world.engine.push(failure(task))
    await call.finished()
    assert call.status == 200
    assert call.events()[-1]["error"]["type"] == "server_error"


async def test_a_client_that_leaves_ends_its_tasks_at_once(world: World) -> None:
    call = world.start("/completion", {"prompt": ["a", "b"], "stream": True})
    one, two = await world.submitted(2)
    world.engine.push(partial(one, b"x"), final(two))
    await call.until(b"data: ")
    call.gone.set()
    await call.finished()
    assert world.engine.cancelled == [1]
    assert not call.ended


async def test_a_client_that_does_not_read_is_given_up_and_nobody_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "MAX_BACKLOG_BYTES", 4096)
    slow = world.start("/completion", {"prompt": "a", "stream": True})
    (task,) = await world.submitted()
    world.engine.push(partial(task, b"x"))
    await slow.until(b"data: ")
    slow.reading.clear()
    for _ in range(100):
        world.engine.push(partial(task, b"y" * 100))
        await asyncio.sleep(0)
    await slow.finished()
    assert world.engine.cancelled == [1]
    assert not slow.ended
    world.engine.results = lambda task: [final(task, b"fine")]
    assert (await world.post("/completion", {"prompt": "b"})).json()["content"] == "fine"


async def test_a_client_that_pauses_gets_everything_later(world: World) -> None:
    call = world.start("/completion", {"prompt": "a", "stream": True})
    (task,) = await world.submitted()
    world.engine.push(partial(task, b"x"))
    await call.until(b"data: ")
    call.reading.clear()
    world.engine.push(*(partial(task, b"y") for _ in range(100)), final(task))
    await asyncio.sleep(0.02)
    call.reading.set()
    await call.finished()
    assert len(call.events()) == 102
