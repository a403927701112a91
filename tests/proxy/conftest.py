"""The endpoint of the product, ready to be called."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from starlette.applications import Starlette

from framework.proxy.routes import public_routes
from framework.proxy.services import ProxyServices
from framework.reconcile.current import CurrentManifest
from framework.values.request_record import RequestRecord
from tests.proxy.recording_fleet import RecordingFleet
from tests.proxy.scripted_engine import ScriptedEngine
from tests.proxy.world import LIMITS, World, manifest_of, model


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """An endpoint that serves the model `smol`, alias `gpt`."""
    engine = ScriptedEngine()
    await engine.start()
    current = CurrentManifest(manifest_of(model("smol", aliases=("gpt",))), datetime(2026, 1, 2, tzinfo=UTC))
    fleet = RecordingFleet(lambda: current.manifest, lambda: engine.url)
    records: list[RequestRecord] = []
    services = ProxyServices(fleet, current, limits=LIMITS, on_finished=records.append)
    app = Starlette(routes=public_routes(services))
    yield World(engine, current, fleet, services, app, records)
    await services.close()
    await engine.stop()
