"""Sixteen clients that ask without end, each checking every answer, and others that leave in the middle."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx
import orjson

from tests.support.chaos.judging import ALLOWED, Asked, Received, Verdict, judge
from tests.support.chaos.models import WORDS

CHAT = "/v1/chat/completions"
# Far more than a busy machine takes: what has not come by then never will.
PATIENCE_S = 300.0
AFTER_ERROR_S = 0.2
LEAVING_AT_ONCE = 64
# The number of a request travels as `top_k`: that means nothing at temperature 0, and the engine prints it.
FIRST_NUMBER = 1_000_000
# Closing such a socket sends a reset in place of an end.
RESET = struct.pack("ii", 1, 0)


@dataclass
class Tally:
    """What came of all requests so far."""

    verdicts: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    """Of the clear errors."""
    bad: list[str] = field(default_factory=list)
    """What must not be, in full."""
    whole: Counter[str] = field(default_factory=Counter)
    """Whole answers of each model."""
    ids: dict[int, str] = field(default_factory=dict)
    """What the server calls each request, by its number."""

    def add(self, asked: Asked, verdict: Verdict, seconds: float) -> None:
        """Count one in."""
        self.verdicts[verdict.kind] += 1
        if verdict.kind == "whole":
            self.whole[asked.word] += 1
        elif verdict.kind == "error":
            self.codes[verdict.detail] += 1
        elif verdict.kind not in ALLOWED:
            name = f"{asked.number} ({self.ids.get(asked.number, 'no id')})"
            kind = "stream" if asked.streams else "whole"
            self.bad.append(f"{verdict.kind}: {name} {asked.word} {kind}, {seconds:.1f} s: {verdict.detail}")


class Clients:
    """Runs clients in a thread. `was_down(since_s)` tells whether the server was down at any moment since."""

    def __init__(
        self, base_url: str, seed: int, was_down: Callable[[float], bool], at_once: int = 16
    ) -> None:
        self.tally = Tally()
        self._url = base_url
        self._seed = seed
        self._was_down = was_down
        self._at_once = at_once
        self._numbers = count(FIRST_NUMBER)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="clients", daemon=True)
        self._thread.start()
        self._ending = asyncio.Event()
        self._storm: Future[None] | None = None
        self._storms = 0

    def start(self) -> None:
        """All of them begin to ask."""
        assert self._storm is None
        self._storms += 1
        self._ending.clear()
        self._storm = asyncio.run_coroutine_threadsafe(self._ask_all(), self._loop)

    def stop(self) -> None:
        """Each takes its last answer; returns when all have."""
        storm, self._storm = self._storm, None
        if storm is not None:
            self._loop.call_soon_threadsafe(self._ending.set)
            storm.result(PATIENCE_S * 2)

    def leave_early(self, times: int, seed: int) -> None:
        """So many clients go away before the end of their stream, some by a reset; returns when they have."""
        asyncio.run_coroutine_threadsafe(self._leave_all(times, random.Random(seed)), self._loop).result(
            PATIENCE_S * 2
        )

    def ask(self, word: str) -> Verdict:
        """One request beside all others."""
        return asyncio.run_coroutine_threadsafe(self._ask_one(word), self._loop).result(PATIENCE_S * 2)

    def ask_at_once(self, times: int) -> Callable[[], object]:
        """So many requests beside all others; what is returned waits for their answers."""

        async def ask_all() -> None:
            await asyncio.gather(*(self._ask_one(WORDS[number % len(WORDS)]) for number in range(times)))

        asked = asyncio.run_coroutine_threadsafe(ask_all(), self._loop)
        return lambda: asked.result(PATIENCE_S * 2)

    def close(self) -> None:
        """End the thread."""
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    async def _ask_all(self) -> None:
        dice = (random.Random(f"{self._seed}-{self._storms}-{number}") for number in range(self._at_once))
        await asyncio.gather(*(self._ask_on(one) for one in dice))

    async def _ask_on(self, dice: random.Random) -> None:
        async with self._client() as client:
            while not self._ending.is_set():
                asked = Asked(
                    next(self._numbers), dice.choice(WORDS), dice.randint(1, 8), streams=dice.random() < 0.6
                )
                verdict = await self._exchange(asked, self._post(client, asked))
                if verdict.kind != "whole":
                    await asyncio.sleep(AFTER_ERROR_S)

    async def _ask_one(self, word: str) -> Verdict:
        async with self._client() as client:
            asked = Asked(next(self._numbers), word, 4, streams=True)
            return await self._exchange(asked, self._post(client, asked))

    async def _exchange(self, asked: Asked, exchange: Awaitable[Received]) -> Verdict:
        sent_s = time.monotonic()
        received = await exchange
        if received.failure or not received.status:
            received = Received(
                received.status, received.body, received.failure, self._was_down(sent_s), received.has_left
            )
        verdict = judge(asked, received)
        self.tally.add(asked, verdict, time.monotonic() - sent_s)
        return verdict

    async def _post(self, client: httpx.AsyncClient, asked: Asked) -> Received:
        status, body = 0, b""
        try:
            async with asyncio.timeout(PATIENCE_S), client.stream("POST", CHAT, json=_body(asked)) as answer:
                status = answer.status_code
                self.tally.ids[asked.number] = answer.headers.get("x-request-id", "")
                async for chunk in answer.aiter_raw():
                    body += chunk
        except (httpx.HTTPError, OSError) as error:
            return Received(status, body, repr(error))
        return Received(status, body)

    async def _leave_all(self, times: int, dice: random.Random) -> None:
        at_once = asyncio.Semaphore(LEAVING_AT_ONCE)

        async def one(number: int) -> None:
            asked = Asked(next(self._numbers), dice.choice(WORDS), 32, streams=dice.random() < 0.8)
            chunks, resets = dice.randint(0, 4), dice.random() < 0.5
            async with at_once:
                await self._exchange(asked, self._leave(asked, chunks, resets=resets))

        await asyncio.gather(*map(one, range(times)))

    async def _leave(self, asked: Asked, chunks: int, *, resets: bool) -> Received:
        """Read so many pieces, or for a short while, then go."""
        address = httpx.URL(self._url)
        payload = orjson.dumps(_body(asked))
        head = (
            f"POST {CHAT} HTTP/1.1\r\nHost: {address.netloc.decode()}\r\nContent-Type: application/json\r\n"
        )
        try:
            reader, writer = await asyncio.open_connection(address.host, address.port)
        except OSError as error:
            return Received(failure=repr(error))
        try:
            writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(payload) + payload)
            for _ in range(chunks):
                async with asyncio.timeout(2.0):
                    if not await reader.read(4096):
                        break
        except (TimeoutError, OSError):
            pass
        finally:
            if resets:
                own: socket.socket = writer.get_extra_info("socket")
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()
        return Received(has_left=True)

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self._url, timeout=PATIENCE_S, trust_env=False)


def _body(asked: Asked) -> dict[str, Any]:
    return {
        "model": asked.word,
        "messages": [{"role": "user", "content": f"Note {asked.number % 7}"}],
        "max_tokens": asked.tokens,
        "temperature": 0,
        "top_k": asked.number,
        "ignore_eos": True,
        "stream": asked.streams,
    }
