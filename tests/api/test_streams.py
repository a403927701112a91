"""Server-sent events: framing, heartbeats, resuming, and the end of a caller's right to read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import StreamingResponse

from framework.api.auth import Caller
from framework.api.errors import ApiError
from framework.api.event_routes import stream_events
from framework.api.model_routes import read_model
from framework.api.streams import HEARTBEAT, frame, guarded
from framework.runtime.logs import LogBuffer
from tests.api.world import TOKEN, World, make_world

CALLER = Caller("token", "operate", "token")
PATIENCE_S = 5.0


def allowed() -> None:
    """Everybody may go on reading."""


def request(path: str, query: str = "", **headers: str) -> Request:
    sent = {"host": "127.0.0.1:8080", "authorization": f"Bearer {TOKEN}", **headers}
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in sent.items()]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": raw}
    return Request({**scope, "query_string": query.encode()})


class Reader:
    """Reads the frames of an answer one by one, heartbeats left out."""

    def __init__(self, response: object) -> None:
        assert isinstance(response, StreamingResponse)
        self._body: Any = response.body_iterator

    async def next(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            while (text := await anext(self._body)) == HEARTBEAT:
                pass
            return str(text)

    async def started(self) -> None:
        """The stream has subscribed: its first heartbeat is out and its source has run."""
        assert await anext(self._body) == HEARTBEAT

    async def close(self) -> None:
        await self._body.aclose()


async def events(world: World, query: str = "", **headers: str) -> Reader:
    asked = request("/api/v1/events/stream", query, **headers)
    return Reader(await stream_events(asked, world.services, CALLER))


def event_ids(frames: list[str]) -> list[int]:
    return [json.loads(text.partition("data: ")[2])["id"] for text in frames]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param("a", "data: a\n\n", id="one-line"),
        pytest.param("", "data: \n\n", id="empty"),
        pytest.param("a\nb", "data: a\ndata: b\n\n", id="two-lines"),
        pytest.param("a\r\nevent: x", "data: a\ndata: event: x\n\n", id="line-ends-cannot-break-out"),
        pytest.param("a\rb", "data: a\ndata: b\n\n", id="carriage-return"),
        pytest.param("a\u2028b\x85c\x0cd", "data: a\u2028b\x85c\x0cd\n\n", id="only-ends-of-the-format-end"),
    ],
)
def test_frame_puts_every_line_into_a_field(data: str, expected: str) -> None:
    assert frame(data) == expected


def test_frame_carries_its_id() -> None:
    assert frame("a", 7) == "id: 7\ndata: a\n\n"


@given(st.text())
def test_no_text_can_leave_its_frame(data: str) -> None:
    lines = frame(data).split("\n")
    assert lines[-2:] == ["", ""]
    assert all(line.startswith("data: ") for line in lines[:-2])


async def test_an_event_with_any_character_is_one_json_document() -> None:
    world = make_world()
    world.services.events.record("ready", "a\u2028b\u2029c\x85d\x0ce\x1cf", model="chat")
    reader = await events(world, "since=0")
    text = await reader.next()
    (data,) = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    assert json.loads(data)["message"] == "a\u2028b\u2029c\x85d\x0ce\x1cf"
    await reader.close()


async def test_a_log_that_never_began_ends_with_the_manager() -> None:
    world = make_world()
    asked = request("/api/v1/models/chat/logs", "follow=1")
    response = await read_model(asked, world.services, CALLER)
    assert isinstance(response, StreamingResponse)
    world.services.changes.close()
    async with asyncio.timeout(PATIENCE_S):
        assert [text async for text in response.body_iterator] == [HEARTBEAT]


async def one_then_silence() -> AsyncIterator[str]:
    yield "first"
    await asyncio.Event().wait()


async def test_silence_is_filled_with_heartbeats() -> None:
    stream = guarded(one_then_silence(), allowed, heartbeat_s=0.01)
    assert [await anext(stream) for _ in range(4)] == [HEARTBEAT, "first", HEARTBEAT, HEARTBEAT]
    await stream.aclose()  # type: ignore[attr-defined]


async def test_stream_ends_with_its_source() -> None:
    async def two() -> AsyncIterator[str]:
        yield "a"
        yield "b"

    assert [text async for text in guarded(two(), allowed, heartbeat_s=1)] == [HEARTBEAT, "a", "b"]


async def test_stream_ends_when_the_caller_loses_the_right() -> None:
    checks = 0

    def once() -> None:
        nonlocal checks
        checks += 1
        if checks > 1:
            raise ApiError(401, "key_invalid", "gone")

    found = [text async for text in guarded(one_then_silence(), once, heartbeat_s=0.01)]
    assert found == [HEARTBEAT, "first"]


async def test_closing_a_stream_closes_its_source() -> None:
    closed = asyncio.Event()

    async def source() -> AsyncIterator[str]:
        try:
            yield "first"
            await asyncio.Event().wait()
        finally:
            closed.set()

    stream = guarded(source(), allowed, heartbeat_s=1)
    assert [await anext(stream), await anext(stream)] == [HEARTBEAT, "first"]
    await stream.aclose()  # type: ignore[attr-defined]
    assert closed.is_set()


async def test_new_events_are_sent_as_they_come() -> None:
    world = make_world()
    world.services.events.record("ready", "before", model="chat")
    reader = await events(world)
    await reader.started()
    upcoming = asyncio.create_task(reader.next())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    world.services.events.record("ready", "after", model="chat")
    assert (await upcoming).startswith("id: 2\n")
    await reader.close()


@pytest.mark.parametrize(
    ("query", "headers", "expected"),
    [
        pytest.param("since=1", {}, [2, 3], id="since"),
        pytest.param("since=0", {}, [1, 2, 3], id="from-the-beginning"),
        pytest.param("", {"last_event_id": "2"}, [3], id="browser-that-reconnects"),
        pytest.param("since=0", {"last_event_id": "2"}, [3], id="header-wins"),
        pytest.param("since=0", {"last_event_id": "x"}, [1, 2, 3], id="header-that-is-no-id"),
        pytest.param("since=0&limit=1", {}, [3], id="only-the-newest"),
        pytest.param("since=0&model=chat", {}, [1, 3], id="of-one-model"),
    ],
)
async def test_stream_resumes_where_the_reader_was(
    query: str, headers: dict[str, str], expected: list[int]
) -> None:
    world = make_world()
    for model in ("chat", "org/other:q4", "chat"):
        world.services.events.record("ready", "x", model=model)
    reader = await events(world, query, **headers)
    assert event_ids([await reader.next() for _ in expected]) == expected
    await reader.close()


async def test_replayed_events_are_not_sent_twice() -> None:
    world = make_world()
    world.services.events.record("ready", "one", model="chat")
    reader = await events(world, "since=0")
    first = await reader.next()
    world.services.events.record("ready", "two", model="chat")
    assert event_ids([first, await reader.next()]) == [1, 2]
    await reader.close()


async def test_stream_takes_only_what_passes_the_filter() -> None:
    world = make_world()
    world.services.events.record("ready", "one", model="chat")
    reader = await events(world, "since=0&kind=exited")
    upcoming = asyncio.create_task(reader.next())
    await asyncio.sleep(0.01)
    world.services.events.record("ready", "two", model="chat")
    world.services.events.record("exited", "three", model="chat")
    assert event_ids([await upcoming]) == [3]
    await reader.close()


def log_of(*lines: str) -> LogBuffer:
    buffer = LogBuffer()
    for line in lines:
        buffer.append(line)
    return buffer


async def logs(world: World, query: str) -> object:
    return await read_model(request("/api/v1/models/chat/logs", query), world.services, CALLER)


async def test_log_is_plain_text() -> None:
    world = make_world()
    world.fleet.logs["chat", 0] = log_of("one", "two <b>", "three")
    async with world.client() as client:
        response = await client.get("/api/v1/models/chat/logs", params={"lines": 2})
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.text == "two <b>\nthree\n"


async def test_log_of_another_replica_is_asked_for_by_number() -> None:
    world = make_world()
    world.fleet.logs["chat", 1] = log_of("of one")
    async with world.client() as client:
        assert (await client.get("/api/v1/models/chat/logs?replica=1")).text == "of one\n"
        assert (await client.get("/api/v1/models/chat/logs?replica=0")).text == ""


async def test_followed_log_begins_with_the_last_lines_and_goes_on() -> None:
    world = make_world()
    buffer = world.fleet.logs["chat", 0] = log_of("one", "two", "three")
    reader = Reader(await logs(world, "follow=1&lines=2"))
    found = [await reader.next(), await reader.next()]
    buffer.append("four")
    assert [*found, await reader.next()] == [
        "id: 2\ndata: two\n\n",
        "id: 3\ndata: three\n\n",
        "id: 4\ndata: four\n\n",
    ]
    await reader.close()


async def test_followed_log_may_begin_with_nothing() -> None:
    world = make_world()
    buffer = world.fleet.logs["chat", 0] = log_of("one")
    reader = Reader(await logs(world, "follow=1&lines=0"))
    upcoming = asyncio.create_task(reader.next())
    await asyncio.sleep(0.01)
    buffer.append("two")
    assert await upcoming == "id: 2\ndata: two\n\n"
    await reader.close()


async def test_followed_log_waits_for_the_first_start() -> None:
    world = make_world()
    reader = Reader(await logs(world, "follow=1"))
    upcoming = asyncio.create_task(reader.next())
    await asyncio.sleep(0.01)
    world.fleet.logs["chat", 0] = log_of("one")
    world.services.changes.mark()
    assert await upcoming == "id: 1\ndata: one\n\n"
    await reader.close()


async def test_followed_log_ends_when_the_model_is_removed() -> None:
    world = make_world()
    buffer = world.fleet.logs["chat", 0] = log_of("one")
    reader = Reader(await logs(world, "follow=1"))
    await reader.next()
    del world.fleet.models["chat"]
    buffer.append("two")
    with pytest.raises(StopAsyncIteration):
        await reader.next()


@pytest.mark.parametrize("query", ["lines=-1", "lines=x", "lines=20001", "follow=maybe", "replica=1000"])
async def test_bad_question_for_a_log_is_refused(query: str) -> None:
    async with make_world().client() as client:
        response = await client.get(f"/api/v1/models/chat/logs?{query}")
    assert response.json()["error"]["code"] == "invalid_body"


async def test_a_frame_with_bytes_that_are_no_text_is_sent() -> None:
    async def frames() -> AsyncIterator[str]:
        yield frame("a\udcff")

    (_, sent) = [text async for text in guarded(frames(), allowed, heartbeat_s=60.0)]
    assert sent.encode() == b"data: a\\xff\n\n"
