"""Drafting is measured, ended when it does not pay, and tried again (05 §11.7); by engines that say how fast
they are."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.api.shapes import model_json
from framework.engines.probe import CapabilityCache
from framework.hardware.device_cache import DeviceCache
from framework.inquiry import Inquiry
from framework.manifest.load import Loaded
from framework.planning.speculation.profit import WatchLimits
from framework.reconcile.current import CurrentManifest
from framework.telemetry.events import utc_now
from framework.values.instance import ModelView, State
from framework.values.manifest import Manifest
from framework.values.plan import LaunchPlan
from framework.values.request import ModelRequest, SpecPolicy
from tests.conftest import MakeFake
from tests.runtime.conftest import WAIT_S, FleetRig, request_for
from tests.support.asking import Client

MakeClient = Callable[[ModelRequest], Client]
OFF = SpecPolicy(mode="off")
NGRAM = SpecPolicy(mode="ngram")
SHORT = WatchLimits(min_requests=2, loses_for_s=0.0, quiet_s=0.0)
# Tokens of 10 ms without drafting.
LOSES = {"tokens": 32, "token_ms": 10.0, "drafting_token_ms": 40.0, "drafted": 20, "accepted": 5}
GAINS = {**LOSES, "drafting_token_ms": 4.0, "accepted": 19}


@pytest.fixture
async def clients(rig: FleetRig) -> AsyncIterator[MakeClient]:
    """Make clients; their connections are given back before the fleet ends."""
    made: list[Client] = []

    def make(request: ModelRequest) -> Client:
        made.append(Client(rig.fleet, request))
        return made[-1]

    yield make
    for client in made:
        await client.close()


async def until(rig: FleetRig, is_so: Callable[[ModelView], bool]) -> ModelView:
    """Wait until the model is so; how it is then."""
    async with asyncio.timeout(WAIT_S):
        while True:
            seen = rig.changes.version
            view = rig.fleet.view("m")
            if view is not None and view.instances and is_so(view):
                return view
            await rig.changes.wait(seen)


def runs(running: str) -> Callable[[ModelView], bool]:
    """Whether the model serves with this drafting."""

    def is_so(view: ModelView) -> bool:
        result = view.instances[0].running
        alone = len(view.instances) == 1 and view.state is State.READY
        return alone and result is not None and result.speculation == running

    return is_so


async def measured(
    rig: FleetRig,
    client: MakeClient,
    request: ModelRequest,
    *,
    policy: SpecPolicy = NGRAM,
) -> Client:
    """Two answers without drafting, then two with it."""
    for spec, running in ((OFF, "none"), (NGRAM, "ngram-mod")):
        asked = replace(request, spec=spec)
        rig.declare(asked)
        await until(rig, runs(running))
        asking = client(asked)
        for _ in range(2):
            await asking.chat()
    return asking


async def test_a_gain_is_shown_in_the_status(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, clients: MakeClient
) -> None:
    await measured(rig, clients, request_for(fake_engine(**GAINS), tiny_gguf))
    view = await until(rig, lambda view: bool(view.speeds))
    document = model_json(view)["instances"][0]["speculation"]
    assert document["speedup"] == 2.5
    assert document["baseline_tokens_per_s"] == 100.0
    assert document["acceptance"] == 0.95
    assert (document["drafted"], document["accepted"], document["requests"]) == (40, 38, 2)


async def test_a_gain_is_shown_for_each_number_of_busy_slots(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, clients: MakeClient
) -> None:
    await measured(rig, clients, request_for(fake_engine(**GAINS), tiny_gguf))
    view = await until(rig, lambda view: bool(view.speeds))
    (speed,) = model_json(view)["speculation_yield"]["speeds"]
    assert (speed["busy_slots"], speed["drafting_requests"], speed["baseline_requests"]) == (1, 2, 2)


async def test_a_loss_switches_drafting_off_and_says_why(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, clients: MakeClient
) -> None:
    rig.shop.watch_limits = SHORT
    client = await measured(rig, clients, request_for(fake_engine(**LOSES), tiny_gguf))
    await client.chat()
    view = await until(rig, runs("none"))
    told = model_json(view)["instances"][0]["speculation"]
    assert (told["asked"], told["resolved"], told["running"]) == ("ngram", "none", "none")
    assert told["reason"]["code"] == "speculation_unprofitable"
    assert told["reason"]["evidence"]["ratio"] == 0.25
    assert "demoted" in rig.kinds("m")


async def test_what_was_switched_off_is_tried_again(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, clients: MakeClient
) -> None:
    rig.shop.watch_limits = replace(SHORT, again_after_s=1.0)
    client = await measured(rig, clients, request_for(fake_engine(**LOSES), tiny_gguf))
    await client.chat()
    await until(rig, runs("none"))
    view = await until(rig, runs("ngram-mod"))
    assert view.instances[0].plan is not None
    assert view.instances[0].plan.spec.reason is None


async def test_the_plan_of_the_server_is_the_one_that_a_start_would_get(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, clients: MakeClient
) -> None:
    rig.shop.watch_limits = SHORT
    asked = request_for(fake_engine(**LOSES), tiny_gguf)
    client = await measured(rig, clients, asked)
    await client.chat()
    await until(rig, runs("none"))
    rig.fleet.unload("m", by="test")
    await rig.until("m", State.STOPPED)
    plan = await planned(rig, replace(asked, spec=NGRAM))
    assert (plan.spec.resolved, plan.spec.block) == ("none", ())
    assert plan.spec.reason is not None
    assert plan.spec.reason.code == "speculation_unprofitable"


async def planned(rig: FleetRig, request: ModelRequest) -> LaunchPlan:
    """What the manager answers for its only model."""
    manifest = Manifest(rig.directory / "serve.toml", "0" * 64, (), models={request.id: request})
    inquiry = Inquiry(
        CurrentManifest(manifest, utc_now()),
        lambda text=None: Loaded(manifest, (), "0" * 64, ()),
        lambda manifest: (),
        rig.fleet,
        rig.shop.planner,
        CapabilityCache(),
        dict(os.environ),
        rig.directory,
        DeviceCache(),
    )
    (plan,) = (await inquiry.plan()).instances
    assert isinstance(plan, LaunchPlan)
    return plan


@pytest.mark.parametrize("watch", ["report", "off"])
async def test_where_it_is_only_to_be_reported_nothing_is_switched_off(
    rig: FleetRig,
    fake_engine: MakeFake,
    tiny_gguf: Path,
    clients: MakeClient,
    watch: str,
) -> None:
    rig.shop.watch_limits = SHORT
    live: dict[str, Any] = {"yield_watch": watch}
    client = await measured(rig, clients, request_for(fake_engine(**LOSES), tiny_gguf, live=live))
    for _ in range(3):
        await client.chat()
        await asyncio.sleep(0.6)
    view = await until(rig, runs("ngram-mod"))
    assert (view.spec_yield.verdict is not None) is (watch == "report")
    assert "demoted" not in rig.kinds("m")


async def test_a_drafter_that_never_drafts_is_told(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, clients: MakeClient
) -> None:
    request = request_for(
        fake_engine(tokens=60), tiny_gguf, extra_args=("--spec-type", "draft-simple", "-md", str(tiny_gguf))
    )
    rig.declare(request)
    await until(rig, runs("draft-simple"))
    client = clients(request)
    for _ in range(2):
        await client.chat(max_tokens=60)
    view = await until(rig, lambda view: view.instances[0].speculation.requests == 2)
    result = view.instances[0].result
    assert result is not None
    assert result.speculation_reason is not None
    assert result.speculation_reason.code == "speculation_inactive"
    assert rig.event("degraded").reason == result.speculation_reason


async def test_an_answer_that_the_client_left_is_not_measured(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, clients: MakeClient
) -> None:
    request = request_for(fake_engine(tokens=1000, token_interval_s=0.01), tiny_gguf, spec=OFF)
    rig.declare(request)
    await until(rig, runs("none"))
    asking = asyncio.create_task(clients(request).chat(max_tokens=1000))
    await until(rig, lambda view: view.instances[0].inflight == 1)
    asking.cancel()
    await asyncio.wait({asking})
    view = await until(rig, lambda view: view.instances[0].inflight == 0)
    assert view.instances[0].speculation.requests == 0
