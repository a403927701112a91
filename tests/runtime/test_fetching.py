"""Models from a hub in a fleet: fetched while others start, shown, cancelled, refused (07 §2, §12, §13)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from framework.engines.probe import CapabilityCache
from framework.models.hub.sources import HubSources
from framework.models.hub.wire import Patience
from framework.runtime.planner import FactPlanner
from framework.values.instance import State
from framework.values.manifest import ServerSettings
from framework.values.reason import Refused
from framework.values.request import ModelRequest, ModelSource, RestartPolicy, SpecPolicy
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, changed, request_for
from tests.support.hub_stand_in import HubStandIn
from tests.support.waiting import eventually

REPO = "org/Tiny-GGUF"
FILE = "Tiny-Q4_K_M.gguf"
MIB = 2**20


@pytest.fixture
def hub(tiny_gguf: Path) -> Iterator[HubStandIn]:
    """A stand-in with one model of some megabytes."""
    with HubStandIn() as stand_in:
        stand_in.add(REPO, {FILE: tiny_gguf.read_bytes() + bytes(4 * MIB)})
        yield stand_in


@pytest.fixture
def hub_rig(rig: FleetRig, hub: HubStandIn, tmp_path: Path) -> FleetRig:
    """The fleet, with the stand-in as its hub and an empty cache."""
    environ = {**os.environ, "HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": hub.url}
    sources = HubSources(environ, patience=Patience(retry_waits_s=()))
    rig.shop.planner = FactPlanner(CapabilityCache(), environ, base_dir=tmp_path, sources=sources)
    return rig


@pytest.fixture
def request_hub(fake_engine: MakeFake, tiny_gguf: Path) -> ModelRequest:
    """A model whose source is the stand-in's."""
    source = ModelSource(repo=REPO, variant="Q4_K_M")
    return changed(request_for(fake_engine(), tiny_gguf), source=source)


async def test_a_model_of_a_hub_is_fetched_and_served(
    hub_rig: FleetRig, hub: HubStandIn, request_hub: ModelRequest
) -> None:
    hub.faults.bytes_per_s = 8 * MIB
    hub_rig.declare(request_hub)
    fetching = await hub_rig.until("m", State.FETCHING)
    assert fetching.state is State.FETCHING
    ready = await hub_rig.until("m", State.READY)
    assert ready.plan is not None
    assert ready.plan.main_gguf.name == FILE
    messages = [event.message for event in hub_rig.events.recent(kind="download", limit=10)]
    assert len(messages) == 2
    assert all(f"hf:{REPO}:Q4_K_M" in message for message in messages)


async def test_progress_of_a_download_is_shown_while_it_runs(
    hub_rig: FleetRig, hub: HubStandIn, request_hub: ModelRequest
) -> None:
    hub.faults.bytes_per_s = 4 * MIB
    hub_rig.declare(request_hub)
    await hub_rig.until("m", State.FETCHING)
    progress = await eventually(lambda: hub_rig.instance("m").progress, 20.0)
    assert progress is not None
    assert (progress.phase, progress.file) == ("fetching", FILE)
    assert progress.total_bytes > 4 * MIB


async def test_other_models_start_while_one_is_downloaded(
    hub_rig: FleetRig, hub: HubStandIn, request_hub: ModelRequest, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    hub.faults.bytes_per_s = MIB
    local = request_for(fake_engine(), tiny_gguf, "local")
    hub_rig.declare(request_hub, local, server=ServerSettings(start_concurrency=1))
    await hub_rig.until("local", State.READY)
    assert hub_rig.instance("m").state is State.FETCHING


async def test_an_unload_ends_the_download(
    hub_rig: FleetRig, hub: HubStandIn, request_hub: ModelRequest
) -> None:
    hub.faults.bytes_per_s = MIB
    hub_rig.declare(request_hub)
    await eventually(lambda: hub.served("/content"), 20.0)
    hub_rig.fleet.unload("m", by="test")
    await hub_rig.until("m", State.STOPPED)
    assert [child for child in psutil.Process().children() if "worker" in " ".join(child.cmdline())] == []


async def test_a_repository_that_does_not_exist_fails_with_the_reason(
    hub_rig: FleetRig, request_hub: ModelRequest
) -> None:
    hub_rig.declare(replace(request_hub, source=ModelSource(repo="org/none", variant="Q8_0")))
    failed = await hub_rig.until("m", State.FAILED)
    assert failed.last_error is not None
    assert failed.last_error.code == "model_missing"


async def test_a_hub_that_is_down_is_asked_again(
    hub_rig: FleetRig, hub: HubStandIn, request_hub: ModelRequest
) -> None:
    hub.faults.api_status = 503
    soon = replace(request_hub.live, restart=RestartPolicy(backoff_max_s=0.1))
    hub_rig.declare(replace(request_hub, live=soon))
    waiting = await hub_rig.until("m", State.BACKOFF)
    assert waiting.last_error is not None
    assert waiting.last_error.code == "download_failed"
    hub.faults.api_status = 0
    await hub_rig.until("m", State.READY)


async def test_a_plan_downloads_nothing(
    hub_rig: FleetRig, hub: HubStandIn, request_hub: ModelRequest
) -> None:
    with pytest.raises(Refused) as caught:
        await hub_rig.shop.planner.plan(request_hub, 0)
    assert caught.value.failure.reason.code == "model_missing"
    assert hub.seen == []


async def test_a_drafter_of_a_hub_is_fetched_for_a_model_of_this_machine(
    hub_rig: FleetRig, hub: HubStandIn, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    hub.faults.bytes_per_s = 8 * MIB
    policy = SpecPolicy("draft", drafter=ModelSource(repo=REPO, variant="Q4_K_M"))
    hub_rig.declare(changed(request_for(fake_engine(), tiny_gguf), spec=policy))
    await hub_rig.until("m", State.FETCHING)
    ready = await hub_rig.until("m", State.READY)
    assert ready.plan is not None
    drafter = ready.plan.spec.drafter
    assert drafter is not None
    assert (Path(drafter).name, ready.plan.main_gguf) == (FILE, tiny_gguf)
    assert drafter in ready.plan.argv
    messages = [event.message for event in hub_rig.events.recent(kind="download", limit=10)]
    assert len(messages) == 2
    assert all(f"hf:{REPO}:Q4_K_M" in message and "m.gguf" not in message for message in messages)


async def test_a_drafter_that_cannot_be_had_keeps_no_model_from_serving(
    hub_rig: FleetRig, hub: HubStandIn, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    policy = SpecPolicy("draft", drafter=ModelSource(repo="org/none", variant="Q8_0"))
    hub_rig.declare(changed(request_for(fake_engine(), tiny_gguf), spec=policy))
    ready = await hub_rig.until("m", State.READY)
    assert ready.plan is not None
    spec = ready.plan.spec
    assert spec.reason is not None
    assert spec.reason.code == "drafter_not_found"
    assert spec.reason.evidence["because"] == ["companion_not_fetched"]
