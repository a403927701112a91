"""HTTP/1.1 for the fake engine: keep-alive, key check, streams, cancelling, and faults on the wire."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from tests.fake_engine.engine import JSON_TYPE, Engine, HttpRefusal, Reply, Slot
from tests.fake_engine.script import record
from tests.fake_engine.slot_files import slot_action

PUBLIC_PATHS = frozenset({"/health", "/v1/health", "/models", "/v1/models"})
KEEP_ALIVE = "Keep-Alive: timeout=5, max=100"
GENERATION_PATHS = frozenset({"/v1/chat/completions", "/chat/completions", "/v1/completions", "/completion"})


@dataclass(frozen=True)
class Request:
    """One request as it came in; header names are lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    @classmethod
    async def read(cls, reader: asyncio.StreamReader) -> Request | None:
        """The next request of a connection, None at its end."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        first, *lines = head.rstrip().split("\r\n")
        method, target, _ = first.split(" ", 2)
        pairs = (line.split(":", 1) for line in lines)
        headers = {name.lower(): value.strip() for name, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        path, _, query = target.partition("?")
        return cls(method, path, query, headers, body)

    def carries(self, keys: frozenset[str]) -> bool:
        """Whether one of the accepted headers holds one of the keys (15 §4)."""
        given = self.headers.get("authorization", ""), self.headers.get("x-api-key", "")
        return any(value.removeprefix("Bearer ") in keys for value in given)


@dataclass
class Server:
    """Serves an engine. `active` counts open requests, for the orderly end."""

    engine: Engine
    keys: frozenset[str]
    at_request: Callable[[int], None] = lambda number: None
    """Told of every generation by its number, which may end the process."""
    active: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        try:
            while (request := await Request.read(reader)) is not None:
                self.active += 1
                try:
                    keep = await self._respond(request, reader, writer)
                finally:
                    self.active -= 1
                if not keep:
                    break
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def _respond(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; whether the connection can be used again."""
        try:
            self._admit(request)
            if request.path in self.engine.script.hang:
                await reader.read()
                return False
            if request.path in GENERATION_PATHS and request.method == "POST":
                return await self._generate(request, reader, writer)
            if request.path.startswith("/slots/"):
                kind, body = JSON_TYPE, self._slot_action(request)
            else:
                kind, body = self.engine.answer(request.method, request.path)
        except HttpRefusal as refusal:
            await send(writer, refusal.status, JSON_TYPE, json.dumps(refusal.body), "Connection: close")
            return False
        await send(writer, HTTPStatus.OK, kind, body, KEEP_ALIVE)
        return True

    def _slot_action(self, request: Request) -> str:
        number, action = int(request.path.rpartition("/")[2]), request.query.partition("=")[2]
        return slot_action(self.engine, number, action, json.loads(request.body)["filename"])

    def _admit(self, request: Request) -> None:
        """The loading answer comes before the key check (15 §4)."""
        if not self.engine.ready:
            raise HttpRefusal(503, "unavailable_error", "Loading model")
        if self.keys and request.path not in PUBLIC_PATHS and not request.carries(self.keys):
            raise HttpRefusal(401, "authentication_error", "Invalid API Key")

    async def _generate(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        engine = self.engine
        try:
            body: dict[str, Any] = json.loads(request.body)
        except ValueError as error:
            raise HttpRefusal(500, "server_error", str(error)) from None
        record("requests", {"path": request.path, "headers": dict(request.headers), "body": body})
        engine.generations += 1
        self.at_request(engine.generations)
        if engine.script.fail_status is not None:
            raise HttpRefusal(engine.script.fail_status, "server_error", "scripted failure")
        reply = Reply.to(engine, request.path, body)
        slot = await engine.take_slot(reply.prompt)
        try:
            if body.get("stream"):
                return await self._stream(reply, slot, reader, writer)
            # As the real server: nobody looks whether the client is still there.
            for number in range(reply.count):
                await asyncio.sleep(self._delay_s(number))
                self._maybe_die()
                slot.decoded += 1
        finally:
            await engine.give_slot(slot)
        await send(writer, HTTPStatus.OK, JSON_TYPE, json.dumps(reply.whole()), KEEP_ALIVE)
        return True

    async def _stream(
        self, reply: Reply, slot: Slot, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Tokens as they come; ends early when the client leaves or the script cuts the line."""
        head = ["HTTP/1.1 200 OK", "Server: llama.cpp", "Content-Type: text/event-stream"]
        head += ["X-Accel-Buffering: no", "Transfer-Encoding: chunked", KEEP_ALIVE, "", ""]
        writer.write("\r\n".join(head).encode())
        gone = asyncio.ensure_future(reader.read(1))
        try:
            for number in range(reply.count):
                with burning(is_on=number == 0 and self.engine.script.busy_while_silent):
                    await asyncio.wait({gone}, timeout=self._delay_s(number))
                self._maybe_die()
                if gone.done() and self.engine.script.keeps_lost_clients:
                    await asyncio.Event().wait()
                if gone.done() or number == self.engine.script.cut_at_token:
                    return False
                slot.decoded += 1
                await send_chunk(writer, reply.chunk(reply.token(number)))
        finally:
            gone.cancel()
        await send_chunk(writer, reply.ending())
        await send_chunk(writer, b"")
        return True

    def _delay_s(self, number: int) -> float:
        script = self.engine.script
        return script.first_token_s if number == 0 else script.token_interval_s

    def _maybe_die(self) -> None:
        script = self.engine.script
        if self.engine.generations != script.die_at_request:
            return
        if not script.port_outlives_s:
            os.kill(os.getpid(), signal.SIGKILL)
        kill_itself = partial(os.kill, os.getpid(), signal.SIGKILL)
        asyncio.get_running_loop().call_later(script.port_outlives_s, kill_itself)
        raise ConnectionResetError


@contextmanager
def burning(*, is_on: bool) -> Iterator[None]:
    """A thread that takes all of a core meanwhile."""
    over = threading.Event()

    def burn() -> None:
        while not over.is_set():
            continue

    if is_on:
        threading.Thread(target=burn, daemon=True).start()
    try:
        yield
    finally:
        over.set()


async def send(writer: asyncio.StreamWriter, status: int, kind: str, body: str, connection: str) -> None:
    """A whole answer with the headers of the real server."""
    data = body.encode()
    head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", "Server: llama.cpp", f"Content-Type: {kind}"]
    head += [f"Content-Length: {len(data)}", "Access-Control-Allow-Origin: ", connection, "", ""]
    writer.write("\r\n".join(head).encode() + data)
    await writer.drain()


async def send_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    """One chunk of a chunked body; an empty one ends it."""
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))
    await writer.drain()
