"""A client below HTTP: calls the ASGI application directly, sees every message, can leave or stop reading."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Scope


@dataclass(eq=False)
class AsgiCall:
    """One running request. `gone` makes the client leave; while `reading` is unset it takes nothing."""

    messages: list[Message] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    reading: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def status(self) -> int | None:
        """Status of the answer, None before its headers."""
        return self.messages[0]["status"] if self.messages else None

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def body(self) -> bytes:
        """What came of the body so far."""
        return b"".join(message["body"] for message in self.messages[1:])

    @property
    def ended(self) -> bool:
        """Whether the answer is complete."""
        return bool(self.messages[1:]) and not self.messages[-1].get("more_body", False)

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    def error(self) -> dict[str, Any]:
        """The error object of the body."""
        found: dict[str, Any] = self.json()["error"]
        return found

    def payloads(self) -> list[str]:
        """The `data:` payloads of a stream; the last is its end mark."""
        lines = self.body.decode().split("\n")
        return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]

    def events(self) -> list[dict[str, Any]]:
        """The JSON payloads of a stream."""
        return [json.loads(payload) for payload in self.payloads() if payload != "[DONE]"]

    async def finished(self, timeout_s: float = 5.0) -> AsgiCall:
        """Wait until the application is through with the request."""
        assert self.task is not None
        await asyncio.wait_for(asyncio.shield(self.task), timeout_s)
        return self

    async def until(self, text: bytes, timeout_s: float = 5.0) -> None:
        """Wait until the body contains something."""
        async with asyncio.timeout(timeout_s):
            while text not in self.body:
                self.arrived.clear()
                await self.arrived.wait()


def start_call(
    app: ASGIApp,
    path: str,
    body: Any = None,
    *,
    method: str = "POST",
    headers: dict[str, str] | None = None,
    chunks: list[bytes] | None = None,
    whole: bool = True,
) -> AsgiCall:
    """Begin a request; `body` is sent as JSON, or `chunks` as they are. Unless `whole` they never end."""
    call = AsgiCall()
    call.reading.set()
    parts = chunks if chunks is not None else [b"" if body is None else json.dumps(body).encode()]
    pending = [
        {"type": "http.request", "body": part, "more_body": number < len(parts) or not whole}
        for number, part in enumerate(parts, 1)
    ]

    async def receive() -> Message:
        if pending:
            return pending.pop(0)
        await call.gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await call.reading.wait()
        if not call.gone.is_set():
            call.messages.append(message)
            call.arrived.set()

    sent = {"host": "localhost:8080", **({"content-type": "application/json"} if method == "POST" else {})}
    raw_path, _, query = path.partition("?")
    scope: Scope = {
        "type": "http",
        "method": method,
        "path": raw_path,
        "query_string": query.encode(),
        "headers": [(n.encode(), v.encode()) for n, v in {**sent, **(headers or {})}.items()],
    }
    call.task = asyncio.create_task(_run(app, scope, receive, send))
    return call


async def _run(app: ASGIApp, scope: Scope, receive: Any, send: Any) -> None:
    await app(scope, receive, send)
