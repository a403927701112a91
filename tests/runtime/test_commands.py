"""Commands that meet each other, and what happens meanwhile: nothing is undone or lost (07 §4, §5)."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from framework.runtime.lease import LeaseRefused
from framework.values.engine import EngineRef
from framework.values.instance import State
from tests.conftest import MakeFake
from tests.runtime.conftest import ALONE, FleetRig, alive, changed, request_for
from tests.support.waiting import eventually


async def test_no_request_is_let_in_once_a_model_was_told_to_stop_now(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf))
    await rig.until("m", State.READY)
    lease = await rig.fleet.acquire("m")
    rig.fleet.unload("m", "now", by="test")
    with pytest.raises(LeaseRefused):
        await rig.fleet.acquire("m")
    assert await asyncio.wait_for(lease.revoked, 5) == "model_unloaded"
    lease.release()
    await rig.until("m", State.STOPPED)


@pytest.mark.parametrize("mode", ["drain", "now"])
async def test_a_process_that_dies_while_it_is_being_stopped_is_no_crash(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, mode: str
) -> None:
    engine = fake_engine()
    rig.declare(request_for(engine, tiny_gguf))
    view = await rig.until("m", State.READY)
    await rig.fleet.acquire("m")
    rig.fleet.unload("m", mode, by="test")  # type: ignore[arg-type]
    os.kill(view.pid or 0, signal.SIGKILL)
    await rig.until("m", State.STOPPED)
    await asyncio.sleep(0.5)
    assert rig.instance("m").state is State.STOPPED
    assert "respawn" not in rig.kinds("m")
    assert len(engine.starts()) == 1


async def test_a_second_failure_is_told_by_its_own_words(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(exit_code=1, stderr=["error loading model: unknown model architecture: 'womba'"])
    rig.declare(request_for(engine, tiny_gguf))
    await rig.until("m", State.FAILED)
    engine.rescript(exit_signal="SIGILL")
    rig.fleet.reload("m", by="test")
    await eventually(lambda: len(engine.starts()) == 2)
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "cpu_unsupported"


async def test_a_replacement_that_runs_out_of_memory_rolls_back(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    good = fake_engine()
    bad = fake_engine(exit_code=1, stderr=["CUDA error: out of memory"])
    request = request_for(good, tiny_gguf)
    rig.declare(request)
    await rig.until("m", State.READY)
    rig.declare(changed(request, engine=EngineRef(path=bad.path)))
    await eventually(lambda: "rolled_back" in rig.kinds("m"), 20)
    # Beside the good one, then in its place: memory that one of them had could have been enough.
    assert len(bad.starts()) == 2
    assert rig.instance("m").request.engine.path == good.path


async def test_a_refused_edit_during_a_drain_leaves_the_old_one_serving(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    request = request_for(fake_engine(), tiny_gguf, pool=ALONE)
    rig.declare(request)
    old = await rig.until("m", State.READY)
    lease = await rig.fleet.acquire("m")
    rig.declare(changed(request, n_ctx=2048))
    await rig.until("m", State.DRAINING)
    rig.declare(changed(request, source=replace(request.source, path=tmp_path / "gone.gguf")))
    await eventually(lambda: "replacement_failed" in rig.kinds("m"))
    view = rig.instance("m")
    assert (view.state, view.pid) == (State.READY, old.pid)
    second = await rig.fleet.acquire("m")
    assert second.instance == lease.instance
    lease.release()
    second.release()


async def test_taking_back_a_refused_edit_leaves_the_serving_process_alone(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    engine = fake_engine()
    request = request_for(engine, tiny_gguf)
    rig.declare(request)
    old = await rig.until("m", State.READY)
    rig.declare(changed(request, source=replace(request.source, path=tmp_path / "gone.gguf")))
    await eventually(lambda: "replacement_failed" in rig.kinds("m"))
    shown = rig.instance("m").last_error
    assert shown is not None
    assert "still serve" in shown.message
    rig.declare(request)
    await asyncio.sleep(0.5)
    view = rig.instance("m")
    assert (view.state, view.pid, view.last_error) == (State.READY, old.pid, None)
    assert len(engine.starts()) == 1


async def test_taking_back_an_edit_while_it_waits_for_a_drain_keeps_the_process(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    request = request_for(engine, tiny_gguf, pool=ALONE)
    rig.declare(request)
    old = await rig.until("m", State.READY)
    lease = await rig.fleet.acquire("m")
    rig.declare(changed(request, n_ctx=2048))
    await rig.until("m", State.DRAINING)
    rig.declare(request)
    await rig.until("m", State.READY)
    lease.release()
    await asyncio.sleep(0.5)
    view = rig.instance("m")
    assert (view.state, view.pid) == (State.READY, old.pid)
    assert len(engine.starts()) == 1


async def test_load_during_a_drain_calls_the_drain_off(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    rig.declare(request_for(engine, tiny_gguf))
    await rig.until("m", State.READY)
    lease = await rig.fleet.acquire("m")
    rig.fleet.unload("m", by="test")
    await rig.until("m", State.DRAINING)
    rig.fleet.load("m", by="test")
    await rig.until("m", State.READY)
    lease.release()
    await asyncio.sleep(0.3)
    assert rig.instance("m").state is State.READY
    assert len(engine.starts()) == 1


@pytest.mark.parametrize("live", [{"display_name": "x"}, {"aliases": ("y",)}], ids=["name", "alias"])
async def test_a_live_change_does_not_load_what_was_unloaded(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, live: dict[str, object]
) -> None:
    request = request_for(fake_engine(), tiny_gguf)
    rig.declare(request)
    await rig.until("m", State.READY)
    rig.fleet.unload("m", by="test")
    await rig.until("m", State.STOPPED)
    rig.declare(replace(request, live=replace(request.live, **live)))  # type: ignore[arg-type]
    await asyncio.sleep(0.3)
    assert rig.instance("m").state is State.STOPPED


async def test_an_edit_during_an_unload_does_not_load_an_on_demand_model(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    request = request_for(fake_engine(), tiny_gguf, live={"load": "on-demand"})
    rig.declare(request)
    lease = await rig.fleet.acquire("m")
    rig.fleet.unload("m", by="test")
    await rig.until("m", State.DRAINING)
    rig.declare(changed(request, n_ctx=2048))
    lease.release()
    await rig.until("m", State.STOPPED)


async def test_commands_of_one_turn_end_with_the_last(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    rig.declare(request_for(engine, tiny_gguf))
    await rig.until("m", State.READY)
    for _ in range(3):
        rig.fleet.reload("m", by="test")
        rig.fleet.unload("m", by="test")
        rig.fleet.load("m", by="test")
    view = await rig.until("m", State.READY)
    await asyncio.sleep(0.5)
    view = await rig.until("m", State.READY)
    assert alive([start["pid"] for start in engine.starts()]) == [view.pid]


async def test_fewer_replicas_and_another_context_leave_one(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    request = request_for(engine, tiny_gguf, live={"replicas": 2})
    rig.declare(request)
    await eventually(lambda: ready(rig) == 2)
    rig.declare(replace(request, n_ctx=2048, live=replace(request.live, replicas=1)))
    await eventually(lambda: len(rig.fleet.views()[0].instances) == 1 and ready(rig) == 1, 20)
    assert rig.instance("m").request.n_ctx == 2048
    assert len(alive([start["pid"] for start in engine.starts()])) == 1


async def test_a_replica_that_drains_is_taken_back_when_two_are_wanted_again(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    request = request_for(fake_engine(), tiny_gguf, live={"replicas": 2})
    rig.declare(request)
    await eventually(lambda: ready(rig) == 2)
    leases = [await rig.fleet.acquire("m") for _ in range(2)]
    rig.declare(replace(request, live=replace(request.live, replicas=1)))
    await eventually(lambda: ready(rig) == 1)
    rig.declare(request)
    await eventually(lambda: ready(rig) == 2)
    for lease in leases:
        lease.release()


async def test_a_bad_change_costs_one_replica(rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path) -> None:
    bad = fake_engine(exit_signal="SIGILL")
    request = request_for(fake_engine(), tiny_gguf, live={"replicas": 2, "rollback": False})
    rig.declare(request)
    await eventually(lambda: ready(rig) == 2)
    rig.declare(changed(request, engine=EngineRef(path=bad.path)))
    await eventually(lambda: "replacement_failed" in rig.kinds("m"))
    await asyncio.sleep(0.5)
    assert ready(rig) == 2
    assert len(bad.starts()) == 1


async def test_a_bad_change_that_has_to_go_first_costs_one_replica(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    bad = fake_engine(exit_signal="SIGILL")
    two = replace(ALONE, budget_bytes=12 * 2**30)
    request = request_for(fake_engine(), tiny_gguf, pool=two, live={"replicas": 2, "rollback": False})
    rig.declare(request)
    await eventually(lambda: ready(rig) == 2)
    rig.declare(changed(request, engine=EngineRef(path=bad.path)))
    await eventually(lambda: any(i.state is State.FAILED for i in rig.fleet.views()[0].instances))
    await asyncio.sleep(0.5)
    assert ready(rig) == 1
    assert len(bad.starts()) == 1


async def test_who_waits_for_a_removed_model_is_told_at_once(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(load_s=-1), tiny_gguf))
    waiting = asyncio.create_task(rig.fleet.acquire("m"))
    await rig.until("m", State.STARTING)
    rig.declare()
    with pytest.raises(LeaseRefused) as refused:
        await asyncio.wait_for(waiting, 5)
    assert refused.value.code == "model_unloaded"


async def test_starts_that_may_succeed_later_are_tried_again_without_limit(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    from framework.values.request import RestartPolicy

    policy = RestartPolicy(max_crashes=1, backoff_max_s=0.05)
    engine = fake_engine(exit_signal="SIGKILL", faulty_starts=4)
    rig.declare(request_for(engine, tiny_gguf, live={"restart": policy}))
    await rig.until("m", State.READY)
    assert len(engine.starts()) == 5


async def test_a_file_that_is_still_being_copied_is_not_tried_at_every_change(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    late = tmp_path / "late.gguf"
    request = request_for(fake_engine(), tiny_gguf)
    rig.declare(changed(request, source=replace(request.source, path=late)))
    await rig.until("m", State.FAILED)
    whole = tiny_gguf.read_bytes()
    for end in range(100, len(whole), max(1, len(whole) // 20)):
        late.write_bytes(whole[:end])
        await asyncio.sleep(0.1)
    late.write_bytes(whole)
    await rig.until("m", State.READY)
    assert rig.kinds("m").count("refused") <= 2


async def test_the_end_of_the_manager_starts_nothing_any_more(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    rig.declare(request_for(engine, tiny_gguf))
    await rig.until("m", State.READY)
    closing = asyncio.create_task(rig.fleet.close(10.0))
    await asyncio.sleep(0)
    rig.fleet.load("m", by="test")
    with pytest.raises(LeaseRefused) as refused:
        await rig.fleet.acquire("m")
    await closing
    assert refused.value.code == "shutting_down"
    assert alive([start["pid"] for start in engine.starts()]) == []


def ready(rig: FleetRig) -> int:
    return sum(instance.state is State.READY for instance in rig.fleet.views()[0].instances)
