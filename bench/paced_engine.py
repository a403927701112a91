"""A llama-server that costs almost nothing: its answers are scripted and its pace is exact.

Started by `bench.proxy_speed` as the binary of a manifest and by itself. It starts as the fake engine of the
tests does, but serves on one asyncio protocol without a task for each connection. The pace comes with the
request, as the first word of its first message: tokens a second, 0 for all at once.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import httptools
import orjson
import uvloop

from tests.fake_engine.__main__ import check_model, informational, print_startup
from tests.fake_engine.command_line import parse
from tests.fake_engine.engine import Engine, HttpRefusal
from tests.fake_engine.script import Script

TICK_S = 0.001
ID = b"chatcmpl-" + b"x" * 32
HEAD = (
    b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5, max=100\r\nTransfer-Encoding: chunked\r\n"
    b"Access-Control-Allow-Origin: \r\nX-Accel-Buffering: no\r\nServer: llama.cpp\r\n"
    b"Content-Type: text/event-stream\r\n\r\n"
)
TIMINGS = {
    "cache_n": 30, "prompt_n": 1, "prompt_ms": 26.235, "prompt_per_token_ms": 26.235,
    "prompt_per_second": 38.117, "predicted_ms": 199.963, "predicted_per_token_ms": 49.99,
    "predicted_per_second": 20.0,
}  # fmt: skip


class Pacer:
    """Gives every stream its token when it is due. Streams are spread evenly over the time of one token."""

    def __init__(self) -> None:
        self._due: dict[int, list[Stream]] = {}
        self._tick = 0
        self._began_s = 0.0
        self._runs = False
        self._opened = 0

    def add(self, stream: Stream, tokens_per_s: float) -> None:
        """Serve a stream from now on."""
        if not self._runs:
            self._runs, self._tick, self._began_s = True, 0, asyncio.get_running_loop().time()
            asyncio.get_running_loop().call_later(TICK_S, self._on_tick)
        stream.period = max(1, round(1 / tokens_per_s / TICK_S))
        self._opened += 1
        self._due.setdefault(self._tick + 1 + self._opened % stream.period, []).append(stream)

    def _on_tick(self) -> None:
        loop = asyncio.get_running_loop()
        now = int((loop.time() - self._began_s) / TICK_S)
        # A tick that came late is made up for: the pace is that of the clock.
        while self._tick < now:
            self._tick += 1
            for stream in self._due.pop(self._tick, ()):
                if stream.send_token():
                    self._due.setdefault(self._tick + stream.period, []).append(stream)
        self._runs = bool(self._due)
        if self._runs:
            loop.call_later(TICK_S, self._on_tick)


class Stream:
    """One streamed answer. `period` is in ticks."""

    def __init__(self, transport: asyncio.Transport, model: str, tokens: int, *, wants_usage: bool) -> None:
        self.period = 1
        self._transport = transport
        self._tokens = tokens
        self._sent = 0
        self._wants_usage = wants_usage
        self._tail = (
            b'}],"created":1796068682,"id":"' + ID + b'","model":' + orjson.dumps(model)
            + b',"system_fingerprint":"b1-571d0d5","object":"chat.completion.chunk"}\n\n'
        )  # fmt: skip

    def begin(self) -> None:
        """The headers, before anything is computed."""
        self._transport.write(HEAD)

    def send_token(self) -> bool:
        """One token; whether there are more."""
        if self._transport.is_closing():
            return False
        event = self._choice(b'null,"index":0,"delta":{"content":" t%d"}' % self._sent)
        event = (self._role() if self._sent == 0 else b"") + chunked(event)
        self._sent += 1
        if self._sent >= self._tokens:
            event += self._ending()
        self._transport.write(event)
        return self._sent < self._tokens

    def send_all(self) -> None:
        """Everything at once."""
        while self.send_token():
            continue

    def _role(self) -> bytes:
        return chunked(self._choice(b'null,"index":0,"delta":{"role":"assistant","content":null}'))

    def _ending(self) -> bytes:
        finish = self._choice(b'"length","index":0,"delta":{}')
        usage = chunked(b'data: {"choices":[' + self._tail[1:-3] + b"," + self._numbers() + b"}\n\n")
        return (
            chunked(finish)
            + (usage if self._wants_usage else b"")
            + chunked(b"data: [DONE]\n\n")
            + b"0\r\n\r\n"
        )

    def _choice(self, fields: bytes) -> bytes:
        return b'data: {"choices":[{"finish_reason":' + fields + self._tail

    def _numbers(self) -> bytes:
        return orjson.dumps(totals(self._tokens))[1:-1]


def totals(tokens: int) -> dict[str, Any]:
    """What stands at the end of an answer."""
    usage = {"completion_tokens": tokens, "prompt_tokens": 31, "total_tokens": 31 + tokens}
    return {"usage": usage, "timings": {**TIMINGS, "predicted_n": tokens}}


def chunked(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, engine: Engine, pacer: Pacer) -> None:
        self._engine = engine
        self._pacer = pacer
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]  # it is one

    def data_received(self, data: bytes) -> None:
        """Parse."""
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """Of the parser."""
        self._url += url

    def on_body(self, body: bytes) -> None:
        """Of the parser."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Answer."""
        path = self._url.decode().partition("?")[0]
        body = b"".join(self._body)
        self._url, self._body = b"", []
        if path == "/v1/chat/completions" and self._engine.ready:
            self._chat(orjson.loads(body))
            return
        try:
            if not self._engine.ready:
                raise HttpRefusal(503, "unavailable_error", "Loading model")
            status, (kind, text) = 200, self._engine.answer(self._parser.get_method().decode(), path)
        except HttpRefusal as refusal:
            status, kind, text = refusal.status, "application/json", orjson.dumps(refusal.body).decode()
        self._send(status, kind, text.encode())

    def _chat(self, body: dict[str, Any]) -> None:
        content = body["messages"][-1]["content"]
        pace = float(content.split()[0] if isinstance(content, str) else content[0]["text"].split()[0])
        tokens = int(body.get("max_tokens") or 8)
        if not body.get("stream"):
            message = {"role": "assistant", "content": " t" * tokens}
            choices = [{"finish_reason": "length", "index": 0, "message": message}]
            frame = {"created": 1796068682, "id": ID.decode(), "model": self._engine.alias}
            answer = {"choices": choices, "object": "chat.completion", **frame, **totals(tokens)}
            self._send(200, "application/json; charset=utf-8", orjson.dumps(answer))
            return
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        stream = Stream(self._transport, self._engine.alias, tokens, wants_usage=usage)
        stream.begin()
        if pace:
            self._pacer.add(stream, pace)
        else:
            stream.send_all()

    def _send(self, status: int, kind: str, data: bytes) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"
        self._transport.write(head.encode() + data)


async def serve(engine: Engine) -> None:
    """Until a signal ends the process."""
    pacer = Pacer()
    loop = asyncio.get_running_loop()
    host, port = engine.options["--host"], int(engine.options["--port"])
    server = await loop.create_server(lambda: Connection(engine, pacer), host, port, backlog=1024)
    check_model(engine.options["--model"])
    print_startup(engine)
    engine.ready = True
    print(f"srv  llama_server: listening on http://{host}:{port}", file=sys.stderr, flush=True)
    await server.serve_forever()


def main(argv: list[str]) -> int:
    """One start."""
    script = Script.read(os.environ)
    if (status := informational(argv, script)) is not None:
        return status
    options = {"--host": "127.0.0.1", "--port": "8080"} | parse(argv, script.era, script.reject_flags)
    uvloop.run(serve(Engine(script, options)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
