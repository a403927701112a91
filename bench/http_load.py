"""A client that costs little: requests on kept connections, and many paced streams at once.

Used by `bench.proxy_speed`. Times are those of the first byte of a body, not of the headers.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httptools
import orjson

OK = 200
EVENT = b"data: "


@dataclass(frozen=True)
class Target:
    """Where to send chats, and as whom. `pids` are the processes whose work and memory count."""

    name: str
    port: int
    model: str
    key: str = ""
    pids: tuple[int, ...] = ()

    def request(self, content: str, tokens: int, *, stream: bool) -> bytes:
        """A whole request."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": tokens,
            "stream": stream,
        }
        if stream:
            body["stream_options"] = {"include_usage": True}
        return self.post("/v1/chat/completions", body)

    def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        """A whole request."""
        data = orjson.dumps(body)
        key = f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{key}"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        return head.encode() + data


class Connection(asyncio.Protocol):
    """One kept connection. `ask` sends a request and waits for the end of its answer."""

    def __init__(self) -> None:
        self.events = 0
        self.first_s = 0.0
        self.broken = ""
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._ended: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Of asyncio."""
        self._transport = transport  # type: ignore[assignment]  # it is one

    def data_received(self, data: bytes) -> None:
        """Of asyncio."""
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Of asyncio."""
        self._finish(f"the connection was lost: {exc}")

    def on_body(self, body: bytes) -> None:
        """Of the parser."""
        if not self.first_s:
            self.first_s = time.perf_counter()
        self.events += body.count(EVENT)

    def on_message_complete(self) -> None:
        """Of the parser."""
        status = self._parser.get_status_code()
        self._finish("" if status == OK else f"answered with {status}")
        if not self._parser.should_keep_alive() and self._transport is not None:
            self._transport.close()
        # Each answer is parsed from its beginning.
        self._parser = httptools.HttpResponseParser(self)

    def send(self, request: bytes) -> asyncio.Future[None]:
        """Send; what is returned is done at the end of the answer."""
        assert self._transport is not None
        self.first_s = 0.0
        self._ended = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._ended

    async def ask(self, request: bytes) -> tuple[float, float]:
        """Milliseconds until the first byte of the body, and until the end."""
        began = time.perf_counter()
        await self.send(request)
        if self.broken:
            raise SystemExit(self.broken)
        return (self.first_s - began) * 1000, (time.perf_counter() - began) * 1000

    @property
    def is_closed(self) -> bool:
        """Whether it takes no further request."""
        return self._transport is None or self._transport.is_closing()

    def close(self) -> None:
        """Leave."""
        if self._transport is not None:
            self._transport.abort()

    def _finish(self, broken: str) -> None:
        if self._ended is not None and not self._ended.done():
            self.broken = broken
            self._ended.set_result(None)


async def connect(target: Target) -> Connection:
    """A connection."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, "127.0.0.1", target.port)
    return connection


async def ask_many(
    target: Target, request: bytes, *, requests: int, clients: int, pause_s: float = 0.0
) -> list[tuple[float, float]]:
    """So many requests by so many clients: milliseconds to the first byte and to the end, of each.

    Each client waits for its answer, and then for `pause_s` on average.
    """

    async def ask(number: int) -> list[tuple[float, float]]:
        connection, pauses = await connect(target), random.Random(number)
        taken = []
        for _ in range(requests // clients):
            if pause_s:
                await asyncio.sleep(pauses.uniform(0.0, 2 * pause_s))
            if connection.is_closed:
                connection = await connect(target)
            taken.append(await connection.ask(request))
        connection.close()
        return taken

    found = await asyncio.gather(*(ask(number) for number in range(clients)))
    return [one for part in found for one in part]


async def open_streams(target: Target, request: bytes, streams: int) -> list[Connection]:
    """Streams that have all begun."""
    connections = []
    for _ in range(streams):
        connection = await connect(target)
        connection.send(request)
        connections.append(connection)
    while not all(one.events or one.broken for one in connections):
        await asyncio.sleep(0.01)
    broken = [one.broken for one in connections if one.broken]
    if broken:
        raise SystemExit(f"{target.name}: {len(broken)} of {streams} streams: {broken[0]}")
    return connections


async def count_events(connections: list[Connection], seconds: float) -> tuple[int, float]:
    """Events that come in about so many seconds, and the seconds."""
    before, began = sum(one.events for one in connections), time.perf_counter()
    await asyncio.sleep(seconds)
    return sum(one.events for one in connections) - before, time.perf_counter() - began
