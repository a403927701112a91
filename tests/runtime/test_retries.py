"""Tries that end before there is a process: told as what they are, spaced, and ended when nobody asks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from framework.engines.probe import CapabilityCache
from framework.models.hub.sources import HubSources
from framework.models.hub.wire import Patience
from framework.runtime import refusals
from framework.runtime.lease import LeaseRefused
from framework.runtime.planner import FactPlanner
from framework.values.instance import State
from framework.values.reason import Reason
from framework.values.request import LoadMode, ModelRequest, ModelSource, RestartPolicy
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, request_for
from tests.support.hub_stand_in import HubStandIn
from tests.support.waiting import eventually

REPO = "org/Tiny-GGUF"
SOON = RestartPolicy(backoff_max_s=0.1)
UNREACHABLE = Reason("download_failed", "The hub cannot be reached.", "Check the network.", "error")


@pytest.fixture
def hub(tiny_gguf: Path) -> Iterator[HubStandIn]:
    """A stand-in with one model, which is down."""
    with HubStandIn() as stand_in:
        stand_in.add(REPO, {"Tiny-Q4_K_M.gguf": tiny_gguf.read_bytes()})
        stand_in.faults.api_status = 503
        yield stand_in


@pytest.fixture
def hub_rig(rig: FleetRig, hub: HubStandIn, tmp_path: Path) -> FleetRig:
    """The fleet, with the stand-in as its hub and an empty cache."""
    environ = {**os.environ, "HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": hub.url}
    sources = HubSources(environ, patience=Patience(retry_waits_s=()))
    rig.shop.planner = FactPlanner(CapabilityCache(), environ, base_dir=tmp_path, sources=sources)
    return rig


def far(engine: Path, load: LoadMode, restart: RestartPolicy) -> ModelRequest:
    """A model of the stand-in."""
    request = request_for(engine, Path("none.gguf"), live={"load": load, "restart": restart})
    return replace(request, source=ModelSource(repo=REPO, variant="Q4_K_M"))


async def test_a_client_hears_that_the_download_failed(hub_rig: FleetRig, fake_engine: MakeFake) -> None:
    hub_rig.declare(far(fake_engine().path, "on-demand", RestartPolicy()))
    with pytest.raises(LeaseRefused) as caught:
        await hub_rig.fleet.acquire("m", key=None)
    refused = caught.value
    assert refused.code == "instance_restarting"
    assert "could not be fetched; next try in" in refused.message
    assert "crashed" not in refused.message
    assert refused.retry_after_s is not None


async def test_nobody_asks_and_nothing_is_tried_until_somebody_does(
    hub_rig: FleetRig, hub: HubStandIn, fake_engine: MakeFake
) -> None:
    hub_rig.declare(far(fake_engine().path, "on-demand", SOON))
    hub_rig.fleet.load("m", by="test")
    failed = await hub_rig.until("m", State.FAILED)
    assert failed.last_error is not None
    assert failed.last_error.code == "download_failed"
    hub.faults.api_status = 0
    lease = await hub_rig.fleet.acquire("m", key=None)
    lease.release()


async def test_tries_of_a_download_are_no_restarts_and_tell_the_reason_once(
    hub_rig: FleetRig, hub: HubStandIn, fake_engine: MakeFake
) -> None:
    hub_rig.declare(far(fake_engine().path, "at-start", SOON))
    await hub_rig.until("m", State.FETCHING, State.BACKOFF)
    await eventually(lambda: hub_rig.instance("m").generation >= 4, 60.0)
    hub.faults.api_status = 0
    ready = await hub_rig.until("m", State.READY)
    assert ready.restarts == 0
    kinds = hub_rig.kinds("m")
    assert "respawn" not in kinds
    assert kinds.count("refused") == 1


async def test_a_request_in_the_wait_is_worth_the_next_try(
    hub_rig: FleetRig, hub: HubStandIn, fake_engine: MakeFake
) -> None:
    hub_rig.declare(far(fake_engine().path, "on-demand", SOON))
    waiting = asyncio.create_task(hub_rig.fleet.acquire("m", key=None))
    await hub_rig.until("m", State.FETCHING, State.BACKOFF)
    await eventually(lambda: hub_rig.instance("m").generation >= 3, 60.0)
    hub.faults.api_status = 0
    (await waiting).release()


@pytest.mark.parametrize(
    ("failed_in", "words"),
    [
        pytest.param(None, "crashed and is started again in 8 s", id="crashed"),
        pytest.param(State.STARTING, "failed to start and is started again in 8 s", id="started"),
        pytest.param(State.PLANNING, "could not be started yet; next try in 8 s", id="planned"),
        pytest.param(State.FETCHING, "could not be fetched; next try in 8 s", id="fetched"),
    ],
)
def test_a_wait_is_told_by_what_happened(failed_in: State | None, words: str) -> None:
    message = refusals.restarting("m", 8.0, UNREACHABLE, failed_in=failed_in).message
    assert words in message
    assert (UNREACHABLE.message in message) == (failed_in is not None)
