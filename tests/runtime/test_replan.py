"""`replan`: a new plan for what serves, which is replaced only where that changes something (07 §3.11)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from framework.runtime.plan_changes import plan_changes, sentence
from framework.values.instance import State
from framework.values.plan import Placement
from framework.values.request import PoolLimits
from tests.conftest import MakeFake
from tests.planning.test_memory_drift import BINARY
from tests.runtime.conftest import WAIT_S, FleetRig, request_for
from tests.support.launch_plans import a_plan
from tests.support.sized_models import write_large_model
from tests.support.waiting import eventually

POOL = PoolLimits("gpu", ("auto",), offload="forbid")


def card(free_mib: int) -> list[str]:
    return [f"Vulkan0: a card (4000 MiB, {free_mib} MiB free)"]


async def test_what_would_be_planned_the_same_way_serves_on(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf))
    before = await rig.until("m", State.READY)
    residents = rig.shop.ledger.residents()
    rig.fleet.replan("m", by="test")
    await eventually(lambda: "replanned" in rig.kinds("m"), WAIT_S)
    told = rig.event("replanned")
    assert told.message == "the plan is the same"
    assert told.data["replaces"] is False
    view = rig.fleet.view("m")
    assert view is not None
    await eventually(lambda: not rig.fleet.views()[0].replacing, WAIT_S)
    assert [one.pid for one in rig.fleet.views()[0].instances] == [before.pid]
    assert [one.instance for one in rig.shop.ledger.residents()] == [one.instance for one in residents]
    lease = await rig.fleet.acquire("m")
    lease.release()


async def test_memory_that_came_free_is_used(rig: FleetRig, fake_engine: MakeFake, tmp_path: Path) -> None:
    engine = fake_engine(devices=card(1600))
    path = write_large_model(tmp_path / "large.gguf")
    rig.declare(request_for(engine, path, n_ctx=0, slots=1, pool=POOL))
    before = await rig.until("m", State.READY)
    engine.rescript(devices=card(4000))
    async with asyncio.timeout(WAIT_S):
        # A list of devices holds for some seconds.
        while rig.instance("m").pid in (before.pid, None):
            rig.fleet.replan("m", by="test")
            await asyncio.sleep(1)
    after = await rig.until("m", State.READY)
    assert before.plan is not None
    assert after.plan is not None
    assert after.plan.fit.context > before.plan.fit.context
    (told,) = [event for event in rig.events.recent(kind="replanned", limit=100) if event.data["replaces"]]
    assert told.data["changes"] == [
        {"field": "context", "from": before.plan.fit.context, "to": after.plan.fit.context}
    ]


async def test_where_nothing_serves_nothing_is_planned(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    rig.declare(request_for(engine, tiny_gguf, live={"load": "manual"}))
    rig.fleet.replan("m", by="test")
    assert rig.event("replanned").data["replaces"] is False
    assert "does not serve" in rig.event("replanned").message
    assert engine.starts() == []


async def test_an_unknown_model_is_no_model(rig: FleetRig) -> None:
    with pytest.raises(KeyError):
        rig.fleet.replan("none", by="test")


def test_only_what_a_client_or_an_operator_notices_is_a_change() -> None:
    two = Placement(devices=("A", "B"), needs_bytes={"A": 5})
    assert plan_changes(a_plan(BINARY, placement=two), a_plan(BINARY, placement=two)) == []
    more = Placement(devices=("A", "B"), needs_bytes={"A": 6})
    assert plan_changes(a_plan(BINARY, placement=two), a_plan(BINARY, placement=more)) == []
    other = Placement(devices=("A",), gpu_layers=3)
    changes = plan_changes(a_plan(BINARY, placement=two), a_plan(BINARY, placement=other, slots=4))
    assert sentence(changes) == "devices A and B -> A, slots 1 -> 4, gpu_layers all -> 3"
