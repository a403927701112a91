"""A call to an instance as a protocol: every way in which an answer arrives, ends, breaks or waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.proxy.engine_connection import (
    HEAD_LIMIT_BYTES,
    READ_AHEAD_BYTES,
    WRITE_PIECE_BYTES,
    EngineConnection,
    UpstreamLost,
    WriteStalled,
)

HEAD = b"HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n"
GRACE_S = 0.02


class RecordingTransport(asyncio.Transport):
    """A connection without a socket. `room_bytes` is what the other side takes before it is slow."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []
        self.written = b""
        self.protocol: EngineConnection | None = None
        self.room_bytes = 10**9

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)
        if len(self.written) > self.room_bytes and self.protocol is not None:
            self.protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return max(0, len(self.written) - self.room_bytes)

    def pause_reading(self) -> None:
        self.done.append("pause")

    def resume_reading(self) -> None:
        self.done.append("resume")

    def close(self) -> None:
        self.done.append("close")

    def abort(self) -> None:
        self.done.append("abort")


def connected(*, write_timeout_s: float = 60.0) -> tuple[EngineConnection, RecordingTransport]:
    """A call whose connection is there."""
    connection, transport = EngineConnection(write_timeout_s=write_timeout_s), RecordingTransport()
    connection.connection_made(transport)
    transport.protocol = connection
    return connection, transport


async def read_all(connection: EngineConnection) -> bytes:
    """The whole body, as it is taken piece by piece."""
    parts = []
    await connection.head()
    while part := await connection.read():
        parts.append(part)
    return b"".join(parts)


def cut(data: bytes, at: list[int]) -> Iterator[bytes]:
    """`data` in pieces."""
    cuts = sorted(number % (len(data) + 1) for number in at)
    for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        if begin < end:
            yield data[begin:end]


def framed(body: list[bytes], how: str) -> bytes:
    """A body as it goes over the wire."""
    whole = b"".join(body)
    if how == "length":
        return HEAD + b"Content-Length: %d\r\n\r\n" % len(whole) + whole
    if how == "chunked":
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in body if part)
        return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    return HEAD + b"\r\n" + whole


@given(
    st.lists(st.binary(max_size=20), max_size=6),
    st.sampled_from(["length", "chunked", "until the end"]),
    st.booleans(),
    st.lists(st.integers(0, 10_000), max_size=12),
)
def test_a_body_is_the_same_however_it_arrives(
    body: list[bytes], how: str, continued: bool, at: list[int]
) -> None:
    async def play() -> None:
        connection, _ = connected()
        wire = (b"HTTP/1.1 100 Continue\r\n\r\n" if continued else b"") + framed(body, how)
        for piece in cut(wire, at):
            connection.data_received(piece)
        connection.connection_lost(None)
        assert await read_all(connection) == b"".join(body)
        assert (connection.status, connection.content_type) == (200, "text/event-stream")

    asyncio.run(play())


@pytest.mark.parametrize(
    ("wire", "error", "kind"),
    [
        pytest.param(b"", None, "close", id="no-answer"),
        pytest.param(HEAD, None, "close", id="half-a-head"),
        pytest.param(b"", ConnectionResetError(), "read", id="reset"),
        pytest.param(b"", BrokenPipeError(), "write", id="closed-while-it-was-sent"),
        pytest.param(HEAD + b"Content-Length: 9\r\n\r\nab", None, "read", id="short-body"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab", None, "read", id="cut-chunk"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", None, "protocol", id="no-chunk"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", None, "protocol", id="no-http"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * HEAD_LIMIT_BYTES, None, "protocol", id="flood"),
        pytest.param(HEAD + b"\r\nab", ConnectionResetError(), "read", id="reset-without-length"),
    ],
)
async def test_kinds_of_breaks(wire: bytes, error: Exception | None, kind: str) -> None:
    connection, _ = connected()
    if wire:
        connection.data_received(wire)
    connection.connection_lost(error)
    with pytest.raises(UpstreamLost) as caught:
        await read_all(connection)
    assert caught.value.kind == kind


async def test_what_came_before_a_break_is_read_first() -> None:
    connection, _ = connected()
    connection.data_received(HEAD + b"Content-Length: 9\r\n\r\nab")
    connection.connection_lost(ConnectionResetError())
    await connection.head()
    assert await connection.read() == b"ab"
    with pytest.raises(UpstreamLost):
        await connection.read()


async def test_what_stands_behind_the_end_of_an_answer_does_not_matter() -> None:
    connection, _ = connected()
    connection.data_received(HEAD + b"Content-Length: 2\r\n\r\nabGARBAGE")
    connection.data_received(b"more of it")
    assert await read_all(connection) == b"ab"


async def test_reading_pauses_while_nobody_takes() -> None:
    connection, transport = connected()
    connection.data_received(HEAD + b"\r\n" + b"x" * (READ_AHEAD_BYTES + 1))
    connection.data_received(b"y")
    assert transport.done == ["pause"]
    await connection.head()
    assert len(await connection.read()) == READ_AHEAD_BYTES + 2
    assert transport.done == ["pause", "resume"]


async def test_a_large_request_is_sent_as_fast_as_it_is_taken() -> None:
    connection, transport = connected()
    request, transport.room_bytes = b"r" * (3 * WRITE_PIECE_BYTES), WRITE_PIECE_BYTES - 1
    for sent in (1, 2, 3):
        if sent == 1:
            connection.send(request)
        else:
            transport.room_bytes += WRITE_PIECE_BYTES
            connection.resume_writing()
        assert len(transport.written) == sent * WRITE_PIECE_BYTES
    assert transport.written == request
    connection.close(GRACE_S)


async def test_a_request_that_is_not_taken_is_given_up() -> None:
    connection, transport = connected(write_timeout_s=0.02)
    transport.room_bytes = 0
    connection.send(b"r")
    with pytest.raises(WriteStalled):
        await connection.head()
    assert transport.done == ["abort"]


async def test_unsent_bytes_keep_a_connection_for_the_grace_time_only() -> None:
    connection, transport = connected()
    transport.room_bytes = 0
    connection.send(b"r" * WRITE_PIECE_BYTES * 2)
    connection.close(GRACE_S)
    assert transport.done == ["close"]
    await asyncio.sleep(GRACE_S * 5)
    assert transport.done == ["close", "abort"]
    assert len(transport.written) == WRITE_PIECE_BYTES


@asynccontextmanager
async def waiting_for_head() -> AsyncIterator[tuple[EngineConnection, asyncio.Task[None]]]:
    """A call that waits for its answer."""
    connection, _ = connected()
    task = asyncio.create_task(connection.head())
    await asyncio.sleep(0)
    yield connection, task


async def test_a_wait_can_be_cancelled_and_taken_up_again() -> None:
    async with waiting_for_head() as (connection, task):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        connection.data_received(framed([b"ab"], "length"))
        assert await read_all(connection) == b"ab"
