"""A drafter that could not be had is looked for again, told, and never restarts anything (05 §9.4)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from framework.api.shapes.instance import instance_json
from framework.engines.probe import CapabilityCache
from framework.models.hub.facts import ResolvedSource
from framework.models.hub.sources import HubSources
from framework.models.hub.wire import Patience
from framework.runtime.planner import FactPlanner
from framework.values.instance import LoadProgress, State
from framework.values.request import ModelRequest, ModelSource, SpecPolicy
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, changed, request_for
from tests.support.hub_stand_in import HubStandIn
from tests.support.model_files import write_tiny_gguf
from tests.support.waiting import eventually

REPO, FILE = "org/Draft-GGUF", "Draft-Q4_0.gguf"
OTHER_REPO = "org/Other-Draft-GGUF"
FAMILY_REPO, MODEL_FILE, HEAD_FILE = "org/gemma-4-E2B-GGUF", "gemma-4-Q8_0.gguf", "mtp-gemma-4.gguf"


@pytest.fixture
def hub() -> Iterator[HubStandIn]:
    """A stand-in that has nothing yet."""
    with HubStandIn() as stand_in:
        yield stand_in


class Stumbling(FactPlanner):
    """The planner, with faults of our own on demand."""

    faults = 0

    async def fetch(self, request: ModelRequest, progress: Callable[[LoadProgress], None]) -> ResolvedSource:
        if self.faults:
            self.faults -= 1
            raise RuntimeError("a fault that nobody foresaw")
        return await super().fetch(request, progress)


@pytest.fixture
def hub_rig(rig: FleetRig, hub: HubStandIn, tmp_path: Path) -> FleetRig:
    """A fleet that looks again at once, with the stand-in as its hub and an empty cache."""
    environ = {**os.environ, "HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": hub.url}
    sources = HubSources(environ, patience=Patience(retry_waits_s=()))
    rig.shop.planner = Stumbling(CapabilityCache(), environ, base_dir=tmp_path, sources=sources)
    rig.shop.drafter_pauses_s = (0.05,)
    return rig


@pytest.fixture
def asked(fake_engine: MakeFake, tiny_gguf: Path) -> ModelRequest:
    """A model of this machine whose policy names a drafter that the hub does not have yet."""
    policy = SpecPolicy("draft", drafter=ModelSource(repo=REPO, variant="Q4_0"))
    return changed(request_for(fake_engine(), tiny_gguf), spec=policy)


def found(rig: FleetRig) -> bool:
    return bool(rig.events.recent(kind="drift", limit=1))


async def test_it_is_told_once_and_the_model_goes_on_without_it(
    hub_rig: FleetRig, hub: HubStandIn, asked: ModelRequest, tiny_gguf: Path
) -> None:
    hub_rig.declare(asked)
    ready = await hub_rig.until("m", State.READY)
    assert ready.plan is not None
    assert ready.plan.spec.drafter is None
    await eventually(lambda: len(hub.served("/api")) > 2, 60.0)
    hub.add(REPO, {FILE: tiny_gguf.read_bytes()})
    await eventually(lambda: found(hub_rig), 60.0)
    shown = hub_rig.instance("m")
    assert shown.pid == ready.pid
    event = hub_rig.event("drift")
    assert event.reason is not None
    assert (event.reason.code, event.model) == ("drafter_available", "m")
    assert "paddock reload m" in event.reason.remedy
    assert [reason["code"] for reason in instance_json(shown)["drift"]] == ["drafter_available"]
    hub_rig.fleet.reload("m", by="test")
    await eventually(lambda: drafter_of(hub_rig) is not None, 60.0)
    assert len(hub_rig.events.recent(kind="drift", limit=10)) == 1


def drafter_of(rig: FleetRig) -> str | None:
    shown = rig.instance("m")
    is_there = shown.state is State.READY and shown.plan is not None
    return shown.plan.spec.drafter if is_there and shown.plan is not None else None


async def test_the_search_ends_with_the_model(
    hub_rig: FleetRig, hub: HubStandIn, asked: ModelRequest
) -> None:
    hub_rig.declare(asked)
    await hub_rig.until("m", State.READY)
    await eventually(lambda: len(hub.served("/api")) > 2, 60.0)
    hub_rig.fleet.unload("m", "drain", by="test")
    await hub_rig.until("m", State.STOPPED)
    assert not found(hub_rig)


async def test_nobody_looks_for_a_file_that_a_path_names(
    hub_rig: FleetRig, hub: HubStandIn, asked: ModelRequest, tmp_path: Path
) -> None:
    policy = SpecPolicy("draft", drafter=ModelSource(path=tmp_path / "gone.gguf"))
    hub_rig.declare(changed(asked, spec=policy))
    ready = await hub_rig.until("m", State.READY)
    assert ready.plan is not None
    assert ready.plan.spec.reason is not None
    assert ready.plan.spec.reason.code == "drafter_not_found"
    assert hub.seen == []


def with_another(asked: ModelRequest) -> ModelRequest:
    """A second model whose drafter is not there: as long as it is looked for, the watch is at work."""
    policy = SpecPolicy("draft", drafter=ModelSource(repo=OTHER_REPO, variant="Q4_0"))
    return replace(asked, id="n", spec=policy)


async def some_looks(hub: HubStandIn, repo: str = OTHER_REPO) -> None:
    """A few more looks of the watch."""
    before = len(hub.served(f"/api/models/{repo}"))
    await eventually(lambda: len(hub.served(f"/api/models/{repo}")) > before + 3, 60.0)


async def test_one_that_is_here_and_does_not_belong_to_the_model_is_not_looked_for(
    hub_rig: FleetRig, hub: HubStandIn, asked: ModelRequest, unfit: bytes
) -> None:
    hub.add(REPO, {FILE: unfit})
    hub_rig.declare(asked, with_another(asked))
    ready = await hub_rig.until("m", State.READY)
    assert ready.plan is not None
    assert ready.plan.spec.reason is not None
    assert ready.plan.spec.reason.evidence["because"] == ["companion_unfit"]
    await hub_rig.until("n", State.READY)
    await some_looks(hub)
    assert not found(hub_rig)


async def test_one_that_comes_and_does_not_belong_to_the_model_is_not_told(
    hub_rig: FleetRig, hub: HubStandIn, asked: ModelRequest, unfit: bytes
) -> None:
    hub_rig.declare(asked, with_another(asked))
    await hub_rig.until("m", State.READY)
    await hub_rig.until("n", State.READY)
    hub.add(REPO, {FILE: unfit})
    await eventually(lambda: bool(hub.served("/content")), 60.0)
    await some_looks(hub)
    assert not found(hub_rig)


async def test_a_fault_of_our_own_does_not_end_the_search(
    hub_rig: FleetRig, hub: HubStandIn, asked: ModelRequest, tiny_gguf: Path
) -> None:
    planner = hub_rig.shop.planner
    assert isinstance(planner, Stumbling)
    hub_rig.declare(asked)
    await hub_rig.until("m", State.READY)
    planner.faults = 2
    await eventually(lambda: not planner.faults, 60.0)
    hub.add(REPO, {FILE: tiny_gguf.read_bytes()})
    await eventually(lambda: found(hub_rig), 60.0)


@pytest.fixture
def unfit(tmp_path: Path) -> bytes:
    """A file that is no model."""
    return write_tiny_gguf(tmp_path / "unfit.gguf", architecture="clip").read_bytes()


@pytest.fixture
def of_family(asked: ModelRequest, hub: HubStandIn, tiny_gguf: Path) -> ModelRequest:
    """A model of a repository that should have a drafter, and has none yet."""
    hub.add(FAMILY_REPO, {MODEL_FILE: tiny_gguf.read_bytes()})
    return replace(asked, source=ModelSource(repo=FAMILY_REPO, variant="Q8_0"), spec=SpecPolicy())


def publish(hub: HubStandIn, tiny_gguf: Path) -> None:
    """The repository gets its drafter, as a new commit."""
    repo = hub.repos[FAMILY_REPO]
    repo.commit, repo.files[HEAD_FILE] = "b" * 40, tiny_gguf.read_bytes()


async def test_one_that_the_repository_got_later_is_found_and_used_by_reload(
    hub_rig: FleetRig, hub: HubStandIn, of_family: ModelRequest, tiny_gguf: Path
) -> None:
    hub_rig.declare(of_family)
    await hub_rig.until("m", State.READY)
    publish(hub, tiny_gguf)
    await eventually(lambda: found(hub_rig), 60.0)
    hub_rig.fleet.reload("m", by="test")
    await eventually(lambda: drafter_of(hub_rig) is not None, 60.0)


async def test_reload_asks_the_repository_again_when_nobody_else_did(
    hub_rig: FleetRig, hub: HubStandIn, of_family: ModelRequest, tiny_gguf: Path
) -> None:
    hub_rig.shop.drafter_pauses_s = (3600.0,)
    hub_rig.declare(of_family)
    await hub_rig.until("m", State.READY)
    publish(hub, tiny_gguf)
    hub_rig.fleet.reload("m", by="test")
    await eventually(lambda: drafter_of(hub_rig) is not None, 60.0)
    assert not found(hub_rig)
