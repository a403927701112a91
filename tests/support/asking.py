"""Requests to a fleet in the test's own event loop, sent the way the endpoint sends them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from framework.proxy.generation import Job, run_stream
from framework.proxy.model_choice import ModelChoice
from framework.proxy.records import ActiveRequest
from framework.proxy.services import ProxyServices
from framework.proxy.stream_events import StreamEvent
from framework.reconcile.current import CurrentManifest
from framework.runtime.fleet import Fleet
from framework.telemetry.events import utc_now
from framework.values.manifest import Manifest
from framework.values.request import ModelRequest

CHAT = "/v1/chat/completions"


class _Nowhere:
    """Takes an answer that nobody reads."""

    async def take(self, events: list[StreamEvent]) -> None:
        """Nothing to do."""


class Client:
    """One client of a model; `close` gives its connections back."""

    def __init__(self, fleet: Fleet, request: ModelRequest) -> None:
        manifest = Manifest(Path("serve.toml"), "0" * 64, (), models={request.id: request})
        self._services = ProxyServices(fleet, CurrentManifest(manifest, utc_now()))
        self._choice = ModelChoice(request.id, request.id, request)

    async def chat(self, text: str = "Say hello.", **fields: Any) -> ActiveRequest:
        """One answer; the request as it was when it had been answered. Raises ProxyError."""
        services = self._services
        request = ActiveRequest(services.new_id(), services.now(), CHAT, services.clock())
        body = {"messages": [{"role": "user", "content": text}], "stream": True, "max_tokens": 16, **fields}
        await run_stream(Job(services, request, self._choice, CHAT, lambda _lease, _live: body), _Nowhere())
        return request

    async def close(self) -> None:
        """Nothing is asked any more."""
        await self._services.close()
