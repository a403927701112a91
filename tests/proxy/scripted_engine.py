"""An HTTP server on loopback that plays one script per request: an engine that can be made to do anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 5, "model": "smol"}
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
TIMINGS = {"prompt_n": 3, "cache_n": 0, "predicted_n": 2, "draft_n": 4, "draft_n_accepted": 1}


def chunk(**fields: Any) -> dict[str, Any]:
    """A chat chunk with the usual envelope."""
    return {**CHUNK, **fields}


def piece(text: str, index: int = 0) -> dict[str, Any]:
    """A chat chunk with a piece of content."""
    return chunk(choices=[{"index": index, "delta": {"content": text}, "finish_reason": None}])


def role() -> dict[str, Any]:
    """The chunk that announces the role, as the engine writes it."""
    return chunk(
        choices=[{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}]
    )


def finish(reason: str = "stop", index: int = 0, **fields: Any) -> dict[str, Any]:
    """The chunk with the finish reason."""
    return chunk(choices=[{"index": index, "delta": {}, "finish_reason": reason}], **fields)


def closing() -> dict[str, Any]:
    """The usage chunk of the engine."""
    return chunk(choices=[], usage=USAGE, timings=TIMINGS)


@dataclass(eq=False)
class Call:
    """One request that the engine got, and the connection to answer it on."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    writer: asyncio.StreamWriter
    received: bytes = b""
    """The body as it came."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the other side has closed the connection."""

    async def send(self, data: bytes) -> None:
        """Raw bytes, flushed."""
        self.writer.write(data)
        await self.writer.drain()

    async def start_stream(self, *, length: int | None = None) -> None:
        """200 and the headers of a stream: chunked, or of a declared length."""
        framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
        await self.send(f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{framing}\r\n\r\n".encode())

    async def raw(self, data: bytes) -> None:
        """Bytes of a chunked body."""
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def events(self, *payloads: dict[str, Any]) -> None:
        """Events, each in a write of its own."""
        for payload in payloads:
            await self.raw(b"data: " + json.dumps(payload).encode() + b"\n\n")

    async def end(self, *, done: bool = True) -> None:
        """The end mark if wanted, and the end of the body."""
        if done:
            await self.raw(b"data: [DONE]\n\n")
        await self.send(b"0\r\n\r\n")

    async def json(self, status: int, body: object) -> None:
        """A whole JSON answer."""
        await self.answer(status, json.dumps(body).encode(), "application/json")

    async def answer(self, status: int, data: bytes, media_type: str) -> None:
        """A whole answer of any kind."""
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\nContent-Length: {len(data)}\r\n\r\n"
        await self.send(head.encode() + data)

    def drop(self) -> None:
        """Reset the connection."""
        self.writer.transport.abort()


Script = Callable[[Call], Awaitable[None]]


async def answer_hello(call: Call) -> None:
    """The ordinary answer: role, two pieces, finish, usage, end mark."""
    await call.start_stream()
    await call.events(role(), piece("Hel"), piece("lo"), finish(), closing())
    await call.end()


async def hang(call: Call) -> None:
    """No answer until the other side goes."""
    await call.closed.wait()


class ScriptedEngine:
    """Plays `scripts` in order, then `default` for every further request."""

    def __init__(self) -> None:
        self.scripts: list[Script] = []
        self.default: Script = answer_hello
        self.calls: list[Call] = []
        self.url = ""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen on a free loopback port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**26)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Close the listener and every connection."""
        if self._server is not None:
            self._server.close()
        for call in self.calls:
            call.drop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            call = await _read_call(reader, writer)
            self.calls.append(call)
            script = self.scripts.pop(0) if self.scripts else self.default
            playing = asyncio.create_task(script(call))
            self._tasks.add(playing)
            playing.add_done_callback(_forget_broken_pipe)
            with suppress(ConnectionResetError):
                await reader.read()
            call.closed.set()
            await asyncio.wait({playing})
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


def _forget_broken_pipe(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and not isinstance(task.exception(), OSError | None):
        raise AssertionError("a script failed") from task.exception()


async def _read_call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Call:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    is_form = headers.get("content-type", "").startswith("multipart/")
    parsed = {} if is_form else json.loads(body or b"{}")
    return Call(head[0].split()[1], headers, parsed, writer, received=body)
