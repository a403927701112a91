"""A replacement beside what it replaces: nobody waits, answers finish, a failure costs nothing (07 §4.3)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from framework.runtime.lease import Lease
from framework.values.instance import InstanceView, State
from framework.values.request import ModelRequest
from tests.conftest import MakeFake
from tests.runtime.conftest import WAIT_S, FleetRig, alive, changed, request_for
from tests.runtime.test_pools import CARD_MIB, TOKENS, Declare, engine, model
from tests.support.fakes import FakeEngine

__all__ = ["engine", "model"]

CARD = f"Vulkan0: a card ({CARD_MIB} MiB, {CARD_MIB} MiB free)"
OUT_OF_MEMORY = (
    "E ggml_gallocr_reserve_n_impl: failed to allocate Vulkan0 buffer of size 1469837312",
    "E graph_reserve: failed to allocate compute buffers",
)


def instances(rig: FleetRig, name: str = "m") -> tuple[InstanceView, ...]:
    view = rig.fleet.view(name)
    assert view is not None
    return view.instances


async def until(rig: FleetRig, happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not happened():
            seen = rig.changes.version
            await rig.changes.wait(seen)


async def until_another_serves(rig: FleetRig, pid: int | None, name: str = "m") -> InstanceView:
    def serves() -> bool:
        first = instances(rig, name)[0]
        return first.state is State.READY and first.pid not in (pid, None)

    await until(rig, serves)
    return instances(rig, name)[0]


async def replaced_under_an_answer(
    rig: FleetRig, served: ModelRequest
) -> tuple[Lease, int | None, InstanceView]:
    """An edit while the model answers: the lease of that, its process, and the instance that serves now."""
    pid = rig.instance("m").pid
    answer = await rig.fleet.acquire("m")
    rig.declare(changed(served, n_ctx=2048))
    return answer, pid, await until_another_serves(rig, pid)


@pytest.fixture
async def served(rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path) -> ModelRequest:
    request = request_for(fake_engine(), tiny_gguf)
    rig.declare(request)
    await rig.until("m", State.READY)
    return request


async def test_the_new_one_serves_while_the_old_one_finishes(rig: FleetRig, served: ModelRequest) -> None:
    answer, old_pid, new = await replaced_under_an_answer(rig, served)
    view = rig.fleet.view("m")
    assert view is not None
    assert view.state is State.READY
    assert view.replacing
    old = view.instances[1]
    assert (old.pid, old.state, old.inflight) == (old_pid, State.DRAINING, 1)
    later = await asyncio.wait_for(rig.fleet.acquire("m"), WAIT_S)
    assert (answer.generation, later.generation) == (1, 2)
    later.release()
    assert not answer.revoked.done()
    answer.release()
    await until(rig, lambda: len(instances(rig)) == 1)
    assert alive([old_pid or 0]) == []
    assert rig.event("replaced").data["strategy"] == "surge"
    assert "drain" in rig.kinds("m")
    assert [one.pid for one in instances(rig)] == [new.pid]


async def test_at_no_moment_is_there_nobody_to_ask(rig: FleetRig, served: ModelRequest) -> None:
    pids, old_pid = set[int | None](), rig.instance("m").pid
    rig.declare(changed(served, n_ctx=2048))

    async def ask() -> None:
        lease = await rig.fleet.acquire("m")
        pids.add(instances(rig)[0].pid)
        lease.release()

    while len(pids) < 2:
        # Nobody gives way in between: a lease that has to be waited for would be seen in the queue.
        asking = asyncio.create_task(ask())
        await asyncio.sleep(0)
        assert asking.done()
        await asking
        await asyncio.sleep(0.001)
    assert old_pid in pids


async def test_where_there_is_no_room_beside_it_the_old_one_ends_first(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS, load="at-start"))
    pid = (await rig.until("a", State.READY)).pid
    rig.declare(model("a", n_ctx=2 * TOKENS + 256, load="at-start"))
    await until_another_serves(rig, pid, "a")
    assert rig.event("replaced").data["strategy"] == "stop_first"


async def test_what_somebody_waits_for_is_not_taken_for_it(rig: FleetRig, model: Declare) -> None:
    """There is room for it beside the old one, but a model whose turn is next needs more than that."""
    served, large = model("a"), model("large", n_ctx=3 * TOKENS)
    rig.declare(served, large)
    answer = await rig.fleet.acquire("a")
    pid = rig.instance("a").pid
    request = asyncio.ensure_future(rig.fleet.acquire("large"))
    await until(rig, lambda: bool(rig.shop.admission.waiting("gpu")))
    rig.declare(model("a", n_ctx=TOKENS + 256), large)
    await until(rig, lambda: rig.instance("a").state is State.DRAINING)
    assert len(instances(rig, "a")) == 2
    answer.release()
    await until_another_serves(rig, pid, "a")
    assert rig.event("replaced").data["strategy"] == "stop_first"
    request.cancel()


async def test_who_was_refused_keeps_nobody_from_it(rig: FleetRig, model: Declare) -> None:
    """A model that finds no room for as long as others stay goes on looking, all night perhaps."""
    pinned, large = model("p", load="at-start", pin=True), model("large", n_ctx=3 * TOKENS, load="at-start")
    rig.declare(pinned)
    pid = (await rig.until("p", State.READY)).pid
    rig.declare(pinned, large)
    await until(rig, lambda: bool(rig.shop.admission.waiting("gpu")))
    rig.declare(model("p", load="at-start", pin=True, n_ctx=TOKENS + 256), large)
    await until_another_serves(rig, pid, "p")
    assert rig.event("replaced").data["strategy"] == "surge"


async def test_a_new_one_that_fails_leaves_the_old_one_as_it_was(
    rig: FleetRig, served: ModelRequest, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    pid = rig.instance("m").pid
    answer = await rig.fleet.acquire("m")
    broken = fake_engine(exit_code=1, stderr=["error: unknown model architecture: 'future'"])
    rig.declare(request_for(broken, tiny_gguf))
    await until(rig, lambda: "replacement_failed" in rig.kinds("m"))
    await until(rig, lambda: len(instances(rig)) == 1)
    (old,) = instances(rig)
    assert (old.pid, old.state, old.inflight) == (pid, State.READY, 1)
    assert old.last_error is not None
    assert "still serve" in old.last_error.message
    assert not answer.revoked.done()
    answer.release()
    assert [r.instance for r in rig.shop.ledger.residents()] == [old.instance]


async def test_a_crash_after_an_edit_that_failed_brings_back_what_served(
    rig: FleetRig, served: ModelRequest, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    pid = rig.instance("m").pid
    rig.declare(request_for(fake_engine(exit_code=1, stderr=["error: what is this"]), tiny_gguf))
    await until(rig, lambda: "replacement_failed" in rig.kinds("m"))
    os.kill(pid or 0, signal.SIGKILL)
    again = await until_another_serves(rig, pid)
    assert again.request.engine.path == served.engine.path
    assert again.last_error is not None
    assert "rolled_back" in rig.kinds("m")


async def test_memory_that_runs_out_beside_it_is_taken_from_it(
    rig: FleetRig, engine: FakeEngine, model: Declare
) -> None:
    """More was listed as free than there was: with the old one gone there is enough."""
    rig.declare(model("a", load="at-start"))
    pid = (await rig.until("a", State.READY)).pid
    engine.rescript(devices=[CARD], exit_code=1, stderr=OUT_OF_MEMORY, faulty_starts=2)
    rig.declare(model("a", load="at-start", n_ctx=TOKENS + 256))
    await until_another_serves(rig, pid, "a")
    assert rig.event("replaced").data["strategy"] == "stop_first"
    assert len(engine.starts()) == 3
    told = [event for event in rig.events.recent(kind="degraded", limit=9) if event.reason is not None]
    why = next(event.message for event in told if event.reason and event.reason.code == "out_of_memory")
    assert "which ends first" in why
    assert len(rig.shop.ledger.residents()) == 1


async def test_a_client_that_hangs_does_not_hold_up_a_stop(rig: FleetRig, served: ModelRequest) -> None:
    answer, old_pid, _ = await replaced_under_an_answer(rig, served)
    rig.fleet.unload("m", "now", by="test")
    await until(rig, lambda: len(instances(rig)) == 1 and instances(rig)[0].state is State.STOPPED)
    assert alive([old_pid or 0]) == []
    answer.release()


async def test_a_reload_starts_what_is_stopped_while_an_old_one_finishes(
    rig: FleetRig, served: ModelRequest
) -> None:
    answer, _, second = await replaced_under_an_answer(rig, served)
    rig.fleet.unload("m", by="test")
    await until(rig, lambda: instances(rig)[0].state is State.STOPPED)
    view = rig.fleet.view("m")
    assert view is not None
    assert view.state is State.STOPPED
    rig.fleet.reload("m", by="test")
    await until_another_serves(rig, second.pid)
    assert not answer.revoked.done()
    answer.release()


@pytest.mark.parametrize("mode", ["now", "kill"])
async def test_a_stop_in_the_middle_ends_both(rig: FleetRig, served: ModelRequest, mode: str) -> None:
    answer, old_pid, new = await replaced_under_an_answer(rig, served)
    new_pid = new.pid
    rig.fleet.unload("m", mode, by="test")  # type: ignore[arg-type]
    if mode == "now":
        assert await asyncio.wait_for(answer.revoked, WAIT_S) == "model_unloaded"
        answer.release()
    await until(rig, lambda: len(instances(rig)) == 1 and instances(rig)[0].state is State.STOPPED)
    assert alive([old_pid or 0, new_pid or 0]) == []
    assert rig.shop.ledger.residents() == ()
    answer.release()


async def test_another_edit_waits_for_the_old_one_and_never_are_there_three_processes(
    rig: FleetRig, served: ModelRequest
) -> None:
    answer, _, second = await replaced_under_an_answer(rig, served)
    rig.declare(changed(served, n_ctx=4096))
    await until(rig, lambda: "waiting" in rig.kinds("m"))
    told = rig.event("waiting").reason
    assert told is not None
    assert (told.code, told.evidence["answers"]) == ("waiting_for_answers", 1)
    later = await asyncio.wait_for(rig.fleet.acquire("m"), WAIT_S)
    assert later.generation == 2
    later.release()
    await asyncio.sleep(0.3)
    assert len([one for one in instances(rig) if one.pid is not None]) == 2
    assert not answer.revoked.done()
    answer.release()
    third = await until_another_serves(rig, second.pid)
    await until(rig, lambda: len(instances(rig)) == 1)
    assert third.plan is not None
    assert third.plan.fit.context == 4096


async def test_an_edit_that_is_taken_back_while_it_waits_changes_nothing(
    rig: FleetRig, served: ModelRequest
) -> None:
    answer, _, second = await replaced_under_an_answer(rig, served)
    rig.declare(changed(served, n_ctx=4096))
    await until(rig, lambda: "waiting" in rig.kinds("m"))
    rig.declare(changed(served, n_ctx=2048))
    await until(rig, lambda: len(instances(rig)) == 2)
    answer.release()
    await until(rig, lambda: len(instances(rig)) == 1)
    assert instances(rig)[0].pid == second.pid


async def test_a_crash_of_the_old_one_meanwhile_brings_up_the_new_settings(
    rig: FleetRig, served: ModelRequest, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    pid = rig.instance("m").pid
    slow = request_for(fake_engine(load_s=1.0), tiny_gguf)
    rig.declare(slow)
    await until(rig, lambda: any(one.state is State.STARTING for one in instances(rig)))
    os.kill(pid or 0, signal.SIGKILL)
    new = await until_another_serves(rig, pid)
    assert new.request.engine.path == slow.engine.path
    assert len(instances(rig)) == 1


async def test_the_end_of_the_old_one_is_no_crash(rig: FleetRig, served: ModelRequest) -> None:
    answer, pid, new = await replaced_under_an_answer(rig, served)
    os.kill(pid or 0, signal.SIGKILL)
    await until(rig, lambda: len(instances(rig)) == 1)
    assert instances(rig)[0].pid == new.pid
    assert "exited" not in rig.kinds("m")
    answer.release()


async def test_both_print_into_the_log_of_the_replica_and_each_into_its_own_file(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(stderr=["first words"]), tiny_gguf))
    pid = (await rig.until("m", State.READY)).pid
    answer = await rig.fleet.acquire("m")
    rig.declare(request_for(fake_engine(stderr=["second words"]), tiny_gguf))
    await until_another_serves(rig, pid)
    log = rig.fleet.log("m")
    assert log is not None
    texts = [line.text for line in log.last(1000)]
    assert texts.index("first words") < texts.index("second words")
    files = sorted((rig.directory / "state" / "logs" / "m.0").glob("*.log"))
    assert ["first words" in file.read_text() for file in files] == [True, False]
    assert ["second words" in file.read_text() for file in files] == [False, True]
    answer.release()


async def test_replicas_are_replaced_one_after_the_other_and_one_serves_all_the_time(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    request = request_for(fake_engine(), tiny_gguf, live={"replicas": 2})
    rig.declare(request)
    await until(rig, lambda: [one.state for one in instances(rig)] == [State.READY] * 2)
    pids = {one.pid for one in instances(rig)}
    rig.declare(changed(request, n_ctx=2048))

    def all_new() -> bool:
        serving = {one.pid for one in instances(rig) if one.state is State.READY}
        assert serving
        return len(serving) == 2 and not serving & pids

    await until(rig, all_new)
    assert [e.data["strategy"] for e in rig.events.recent(kind="replaced", limit=9)] == ["surge"] * 2
