"""The life of models: start, use, change, stop, crash (07)."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from framework.runtime.lease import LeaseRefused
from framework.values.instance import State
from tests.conftest import MakeFake
from tests.runtime.conftest import ALONE, FleetRig, alive, changed, request_for
from tests.support.waiting import eventually


async def test_a_model_that_loads_at_start_becomes_ready(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf))
    view = await rig.until("m", State.READY)
    assert view.pid is not None
    assert view.result is not None
    assert view.result.slots == 2


async def test_the_same_manifest_twice_starts_one_process(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    rig.declare(request_for(engine, tiny_gguf))
    await rig.until("m", State.READY)
    rig.declare(request_for(engine, tiny_gguf))
    await asyncio.sleep(0.2)
    assert len(engine.starts()) == 1


async def test_a_changed_context_replaces_the_process(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    request = request_for(fake_engine(), tiny_gguf)
    rig.declare(request)
    old = await rig.until("m", State.READY)
    rig.declare(changed(request, n_ctx=2048))
    await asyncio.sleep(0)
    while rig.instance("m").pid == old.pid:
        await asyncio.sleep(0.02)
    new = await rig.until("m", State.READY)
    assert new.pid != old.pid
    assert new.generation == old.generation + 1
    assert rig.event("replaced").data["to"] == new.instance
    await eventually(lambda: not alive([old.pid or 0]), what="the old process to end")


async def test_a_live_change_touches_no_process(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    request = request_for(fake_engine(), tiny_gguf)
    rig.declare(request)
    old = await rig.until("m", State.READY)
    rig.declare(replace(request, live=replace(request.live, aliases=("other",), drain_timeout_s=1.0)))
    assert rig.fleet.resolve("other") == "m"
    assert rig.instance("m").pid == old.pid
    assert rig.instance("m").request.live.drain_timeout_s == 1.0


async def test_a_removed_model_ends_and_is_forgotten(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf))
    view = await rig.until("m", State.READY)
    rig.declare()
    await rig.until_gone("m")
    assert alive([view.pid or 0]) == []


async def test_removal_waits_for_the_request_in_flight(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf))
    await rig.until("m", State.READY)
    lease = await rig.fleet.acquire("m")
    rig.declare()
    view = await rig.until("m", State.DRAINING)
    assert view.inflight == 1
    await asyncio.sleep(0.3)
    assert alive([view.pid or 0]) == [view.pid]
    lease.release()
    await rig.until_gone("m")
    assert rig.event("drain").data["cancelled"] == 0


async def test_the_drain_limit_revokes_what_still_runs(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf, live={"drain_timeout_s": 0.2}))
    await rig.until("m", State.READY)
    lease = await rig.fleet.acquire("m")
    rig.fleet.unload("m", by="test")
    assert await asyncio.wait_for(lease.revoked, 5) == "model_unloaded"
    lease.release()
    await rig.until("m", State.STOPPED)
    assert rig.event("drain").data["cancelled"] == 1


async def test_a_request_loads_an_on_demand_model_once_for_all_who_wait(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(load_s=0.5)
    rig.declare(request_for(engine, tiny_gguf, live={"load": "on-demand", "max_queue": 20}))
    leases = await asyncio.gather(*(rig.fleet.acquire("m") for _ in range(20)))
    assert len(engine.starts()) == 1
    assert len({lease.instance for lease in leases}) == 1
    for lease in leases:
        lease.release()


async def test_more_than_max_queue_waiting_requests_are_refused(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(load_s=-1), tiny_gguf, live={"load": "on-demand", "max_queue": 1}))
    waiting = asyncio.create_task(rig.fleet.acquire("m"))
    await rig.until("m", State.STARTING)
    with pytest.raises(LeaseRefused) as refused:
        await rig.fleet.acquire("m")
    assert refused.value.code == "queue_full"
    assert refused.value.retry_after_s is not None
    waiting.cancel()


async def test_an_idle_model_stops_but_not_while_it_serves(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf, live={"load": "on-demand", "idle_after_s": 0.3}))
    lease = await rig.fleet.acquire("m")
    await asyncio.sleep(1.5)
    assert rig.instance("m").state is State.READY
    lease.release()
    await rig.until("m", State.STOPPED)


async def test_a_model_unloaded_by_command_is_not_loaded_by_a_request(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf))
    await rig.until("m", State.READY)
    rig.fleet.unload("m", by="test")
    await rig.until("m", State.STOPPED)
    with pytest.raises(LeaseRefused) as refused:
        await rig.fleet.acquire("m")
    assert refused.value.code == "model_not_loaded"
    rig.fleet.load("m", by="test")
    await rig.until("m", State.READY)


async def test_a_killed_child_is_restarted_at_once(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf))
    old = await rig.until("m", State.READY)
    os.kill(old.pid or 0, signal.SIGKILL)
    await rig.until("m", State.BACKOFF, State.PENDING, State.FETCHING, State.PLANNING, State.STARTING)
    new = await rig.until("m", State.READY)
    assert new.restarts == 1
    assert new.pid != old.pid
    assert "SIGKILL" in rig.event("exited").message


async def test_too_many_crashes_end_in_a_crash_loop(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    from framework.values.request import RestartPolicy

    policy = RestartPolicy(max_crashes=2, backoff_max_s=0.05)
    engine = fake_engine(exit_code=3, exit_after_s=0.7)
    rig.declare(request_for(engine, tiny_gguf, live={"restart": policy}))
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "crash_loop"
    assert len(engine.starts()) == 3


async def test_unload_takes_the_grandchild_with_it(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(grandchild=True), tiny_gguf))
    view = await rig.until("m", State.READY)
    group = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _group(int(entry.name)) == view.pid
    ]
    assert len(group) == 2
    rig.fleet.unload("m", by="test")
    await rig.until("m", State.STOPPED)
    assert alive(group) == []


async def test_an_engine_deaf_to_sigterm_is_killed(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(ignore_sigterm=True), tiny_gguf))
    view = await rig.until("m", State.READY)
    rig.fleet.unload("m", by="test")
    await rig.until("m", State.STOPPED)
    assert alive([view.pid or 0]) == []
    assert rig.event("stopped").data["signals"][-1] == "SIGKILL"


async def test_a_stop_during_the_health_wait_leaves_nothing(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(load_s=-1)
    rig.declare(request_for(engine, tiny_gguf))
    while not engine.starts():
        await asyncio.sleep(0.02)
    rig.fleet.unload("m", by="test")
    await rig.until("m", State.STOPPED)
    assert alive([engine.starts()[0]["pid"]]) == []
    assert len(engine.starts()) == 1


async def test_a_replacement_that_fails_rolls_back(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    good, bad = fake_engine(), fake_engine(exit_code=1, stderr=["error: no such luck"])
    request = request_for(good, tiny_gguf, pool=ALONE)
    rig.declare(request)
    await rig.until("m", State.READY)
    rig.declare(changed(request, engine=request_for(bad, tiny_gguf).engine))
    while "rolled_back" not in rig.kinds("m"):
        await asyncio.sleep(0.02)
    view = await rig.until("m", State.READY)
    assert view.request.engine.path == good.path
    assert view.last_error is not None
    assert "no such luck" in view.last_error.message


async def test_a_refused_replacement_leaves_the_old_one_serving(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    request = request_for(fake_engine(), tiny_gguf)
    rig.declare(request)
    old = await rig.until("m", State.READY)
    rig.declare(changed(request, source=replace(request.source, path=tmp_path / "gone.gguf")))
    while "replacement_failed" not in rig.kinds("m"):
        await asyncio.sleep(0.02)
    view = rig.instance("m")
    assert (view.state, view.pid) == (State.READY, old.pid)
    assert view.last_error is not None
    assert view.last_error.code == "model_missing"


async def test_replicas_share_the_load(rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf, live={"replicas": 2}))
    while len([i for i in rig.fleet.views()[0].instances if i.state is State.READY]) < 2:
        await asyncio.sleep(0.02)
    first, second = await rig.fleet.acquire("m"), await rig.fleet.acquire("m")
    assert {first.replica, second.replica} == {0, 1}
    first.release()
    second.release()


async def test_stopped_children_leave_no_zombies(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    rig.declare(request_for(engine, tiny_gguf))
    for _ in range(3):
        await rig.until("m", State.READY)
        rig.fleet.unload("m", by="test")
        await rig.until("m", State.STOPPED)
        rig.fleet.load("m", by="test")
    await rig.until("m", State.READY)
    zombies = [s["pid"] for s in engine.starts()[:-1] if Path(f"/proc/{s['pid']}").exists()]
    assert zombies == []


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None
