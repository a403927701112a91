"""The endpoint of the product over a recording fleet and a scripted engine, as one thing to set up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from framework.proxy.limits import ProxyLimits
from framework.proxy.services import ProxyServices
from framework.reconcile.current import CurrentManifest
from framework.values.manifest import Manifest
from framework.values.request import LiveSettings, ModelRequest, ModelSource
from framework.values.request_record import RequestRecord
from tests.proxy.asgi_client import AsgiCall, start_call
from tests.proxy.recording_fleet import RecordingFleet
from tests.proxy.scripted_engine import ScriptedEngine

HELLO = {"model": "smol", "messages": [{"role": "user", "content": "hi"}]}
# Short enough that a test of a limit is quick, long enough for a busy machine.
LIMITS = ProxyLimits(connect_timeout_s=1.0, write_timeout_s=0.3, close_grace_s=0.1, keepalive_interval_s=0.0)


def model(name: str, *, projector: Path | None = None, **live: Any) -> ModelRequest:
    """A declared model; `live` are live settings."""
    source = ModelSource(path=Path(f"/models/{name}.gguf"))
    return ModelRequest(name, source, projector=projector, live=LiveSettings(**live))


def manifest_of(*models: ModelRequest, **fields: Any) -> Manifest:
    """A manifest with these models."""
    by_id = {request.id: request for request in models}
    return Manifest(Path("/etc/serve.toml"), "0" * 64, (), models=by_id, **fields)


@dataclass
class World:
    """Everything around the endpoint, to be set up and looked at by a test."""

    engine: ScriptedEngine
    current: CurrentManifest
    fleet: RecordingFleet
    services: ProxyServices
    app: Starlette
    records: list[RequestRecord] = field(default_factory=list)

    def declare(self, *models: ModelRequest, **fields: Any) -> None:
        """Put another manifest in force."""
        self.current.manifest = manifest_of(*models, **fields)

    def call(self, path: str, body: Any = None, **options: Any) -> AsgiCall:
        """Begin a request."""
        return start_call(self.app, path, body, **options)

    async def ask(self, path: str, body: Any = None, **options: Any) -> AsgiCall:
        """Make a request and wait for its end."""
        return await self.call(path, body, **options).finished()

    async def chat(self, **fields: Any) -> AsgiCall:
        """A chat request to its end."""
        return await self.ask("/v1/chat/completions", {**HELLO, **fields})

    def start_chat(self, **fields: Any) -> AsgiCall:
        """A chat request that goes on."""
        return self.call("/v1/chat/completions", {**HELLO, **fields})

    def limit(self, **limits: Any) -> None:
        """Change limits before the first request."""
        self.services.limits = replace(self.services.limits, **limits)
        self.services.__post_init__()
