"""A head that drafts over divided tensors is armed: after one end it serves on without (07 §10)."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from framework.values.instance import InstanceView, State
from framework.values.request import ModelRequest, SpecPolicy
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, alive, request_for
from tests.support.fakes import FakeEngine
from tests.support.sized_models import write_large_model
from tests.support.waiting import eventually

CARDS = [f"CUDA{number}: a card (8000 MiB, 8000 MiB free)" for number in range(2)]


@pytest.fixture
def engine(fake_engine: MakeFake) -> FakeEngine:
    """Two cards, and a model that drafts."""
    return fake_engine(devices=CARDS)


@pytest.fixture
async def armed(rig: FleetRig, engine: FakeEngine, tmp_path: Path) -> InstanceView:
    """Ready, with MTP over both cards."""
    rig.declare(the_request(engine, tmp_path))
    view = await rig.until("m", State.READY, State.FAILED)
    assert view.state is State.READY, view.last_error
    assert drafts(engine) == [True]
    assert "tensor" in engine.starts()[0]["argv"]
    return view


def the_request(engine: FakeEngine, tmp_path: Path) -> ModelRequest:
    model = write_large_model(tmp_path / "large.gguf", has_head=True)
    policy = SpecPolicy("mtp")
    return request_for(engine, model, n_ctx=8192, slots=1, tensor_parallel=True, spec=policy)


def drafts(engine: FakeEngine) -> list[bool]:
    """Of each start, whether it was to draft by its head."""
    return ["draft-mtp" in start["argv"] for start in engine.starts()]


async def end(rig: FleetRig, number: signal.Signals = signal.SIGKILL) -> InstanceView:
    """End the process from outside; what follows, once it is ready."""
    before = rig.instance("m")
    assert before.pid is not None
    os.kill(before.pid, number)
    await eventually(lambda: alive([before.pid or 0]) == [], what="the process to be gone")
    generation = before.generation + 1
    await eventually(lambda: rig.instance("m").generation == generation, what="the next one")
    return await rig.until("m", State.READY)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["hard", "soft"])
async def test_one_end_is_enough_and_what_was_asked_stays(
    rig: FleetRig, engine: FakeEngine, armed: InstanceView, number: signal.Signals
) -> None:
    view = await end(rig, number)
    assert drafts(engine) == [True, False]
    assert view.plan is not None
    assert view.plan.spec.reason is not None
    assert (view.plan.spec.requested, view.plan.spec.reason.code) == ("mtp", "runtime_error")
    assert rig.event("demoted").data["instance"] == armed.instance
    assert rig.event("respawn").data["delay"] == 0.0


async def test_a_later_crash_is_an_ordinary_one_and_a_reload_drafts_again(
    rig: FleetRig, engine: FakeEngine, armed: InstanceView
) -> None:
    await end(rig)
    again = await end(rig)
    assert again.restarts == armed.restarts + 2
    assert rig.kinds("m").count("demoted") == 1
    assert drafts(engine) == [True, False, False]
    rig.fleet.reload("m", by="a test")
    await eventually(lambda: rig.instance("m").generation == again.generation + 1, what="the reload")
    await rig.until("m", State.READY)
    assert drafts(engine) == [True, False, False, True]


async def test_a_broken_stream_of_a_living_process_costs_nothing(
    rig: FleetRig, engine: FakeEngine, armed: InstanceView
) -> None:
    lease = await rig.fleet.acquire("m")
    lease.release()
    assert (await rig.fleet.report_failure(lease, "read", opened=False)).retry
    assert "demoted" not in rig.kinds("m")
    assert rig.instance("m").instance == armed.instance


async def test_two_requests_that_fail_cause_one_replacement_and_are_not_repeated(
    rig: FleetRig, engine: FakeEngine, armed: InstanceView
) -> None:
    """07 §9.2 step 7, §10.4."""
    leases = [await rig.fleet.acquire("m") for _ in range(2)]
    assert armed.pid is not None
    os.kill(armed.pid, signal.SIGKILL)
    for lease in leases:
        lease.release()
    reports = (rig.fleet.report_failure(lease, "close", opened=False) for lease in leases)
    for verdict in await asyncio.gather(*reports):
        assert (verdict.retry, verdict.code) == (False, "instance_restarting")
        assert verdict.reason is not None
        assert verdict.reason.code == "runtime_error"
    await rig.until("m", State.READY)
    assert drafts(engine) == [True, False]


@pytest.mark.parametrize("mode", ["now", "kill"])
async def test_a_planned_end_is_no_crash(
    rig: FleetRig, engine: FakeEngine, armed: InstanceView, mode: str
) -> None:
    assert armed.pid is not None
    if mode == "now":
        os.kill(armed.pid, signal.SIGKILL)
    rig.fleet.unload("m", "kill" if mode == "kill" else "now", by="a test")
    await rig.until("m", State.STOPPED)
    assert "demoted" not in rig.kinds("m")
    assert drafts(engine) == [True]
