"""Edits, commands, crashes and other programs while models share the memory of a pool."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace

from framework.values.instance import State
from tests.runtime.conftest import WAIT_S, FleetRig
from tests.runtime.test_pools import (
    CARD_MIB,
    POOL,
    TOKENS,
    Declare,
    engine,
    evicted,
    model,
    ready,
    refusal,
    until_waiting,
    use,
)
from tests.support.fakes import FakeEngine

__all__ = ["engine", "model"]


async def until_replaced(rig: FleetRig, name: str, pid: int | None) -> None:
    async with asyncio.timeout(WAIT_S):
        while rig.instance(name).pid in (pid, None) or rig.instance(name).state is not State.READY:
            await asyncio.sleep(0.02)


async def test_reload_replaces_a_model_that_a_request_has_loaded(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a"))
    await use(rig, "a")
    pid = rig.instance("a").pid
    rig.fleet.reload("a", by="test")
    await until_replaced(rig, "a", pid)


async def test_a_crashed_model_that_a_request_has_loaded_comes_back(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a"))
    await use(rig, "a")
    pid = rig.instance("a").pid
    assert pid is not None
    os.kill(pid, signal.SIGSEGV)
    await until_replaced(rig, "a", pid)


async def test_a_replacement_that_is_called_off_gives_back_its_promise(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS, load="at-start"))
    await rig.until("a", State.READY)
    answer = await rig.fleet.acquire("a")
    rig.declare(model("a", load="at-start", n_ctx=2 * TOKENS + 256))
    await rig.until("a", State.DRAINING)
    rig.fleet.unload("a", "now", by="test")
    answer.release()
    await rig.until("a", State.STOPPED)
    assert rig.shop.ledger.residents() == ()


async def test_a_replacement_comes_before_whoever_asks_while_it_drains(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS, load="at-start"))
    await rig.until("a", State.READY)
    answer = await rig.fleet.acquire("a")
    edited = model("a", n_ctx=2 * TOKENS + 256, load="at-start")
    rig.declare(edited)
    await rig.until("a", State.DRAINING)
    rig.declare(edited, model("m", n_ctx=2 * TOKENS, load="at-start", priority=5))
    await until_waiting(rig, "m")
    pid = rig.instance("a").pid
    answer.release()
    await until_replaced(rig, "a", pid)


async def test_who_finds_no_room_holds_up_nobody_who_does(rig: FleetRig, model: Declare) -> None:
    pinned = model("p", pin=True, load="at-start", priority=9)
    rig.declare(pinned)
    await rig.until("p", State.READY)
    large = model("large", n_ctx=2 * TOKENS + TOKENS // 2, load="at-start", priority=5)
    rig.declare(pinned, large, model("small"))
    await until_waiting(rig, "large")
    await use(rig, "small")
    assert ready(rig) == {"p", "small"}
    assert (await refusal(rig, "large")).code == "no_memory"


async def test_a_larger_budget_lets_in_who_waits(rig: FleetRig, model: Declare) -> None:
    def declare(budget_mib: int) -> None:
        pool = replace(POOL, budget_bytes=budget_mib << 20)
        names = (("a", 1), ("b", 0))
        rig.declare(*(model(name, pool=pool, load="at-start", priority=p) for name, p in names))

    declare(2000)
    await rig.until("a", State.READY)
    await until_waiting(rig, "b")
    declare(CARD_MIB)
    await rig.until("b", State.READY)
    assert ready(rig) == {"a", "b"}


async def test_a_pin_that_is_lifted_lets_in_who_waits(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS, pin=True), model("b", n_ctx=2 * TOKENS, load="manual"))
    await use(rig, "a")
    rig.fleet.load("b", by="test")
    await rig.until("b", State.FAILED)
    rig.declare(model("a", n_ctx=2 * TOKENS), model("b", n_ctx=2 * TOKENS, load="manual"))
    rig.fleet.load("b", by="test")
    await rig.until("b", State.READY)
    assert evicted(rig) == ["a"]


async def test_nobody_leaves_for_a_request_that_has_gone(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS), model("b", n_ctx=2 * TOKENS, queue_timeout_s=1.0))
    answer = await rig.fleet.acquire("a")
    pid = rig.instance("a").pid
    waiting = asyncio.create_task(rig.fleet.acquire("b"))
    await rig.until("a", State.DRAINING)
    waiting.cancel()
    await rig.until("a", State.READY)
    assert not answer.revoked.done()
    answer.release()
    await use(rig, "a")
    assert rig.instance("a").pid == pid


async def test_what_another_program_takes_is_seen_at_once(
    rig: FleetRig, model: Declare, engine: FakeEngine
) -> None:
    free = CARD_MIB - 1500
    engine.rescript(devices=[f"Vulkan0: a card ({CARD_MIB} MiB, {free} MiB free)"])
    rig.declare(model("a"), model("b"))
    await use(rig, "a")
    engine.rescript(devices=[f"Vulkan0: a card ({CARD_MIB} MiB, {free - 1400} MiB free)"])
    refused = await refusal(rig, "b")
    assert evicted(rig) == ["a"]
    # The list of this card never shows what an ended process gave back.
    assert "Vulkan0" in rig.event("memory").message
    assert refused.reason is not None
    assert "other programs hold" in refused.reason.message


async def test_an_end_of_everything_answers_who_waits(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS), model("b", n_ctx=2 * TOKENS))
    answer = await rig.fleet.acquire("a")
    waiting = asyncio.create_task(refusal(rig, "b"))
    await until_waiting(rig, "b")
    closing = asyncio.create_task(rig.fleet.close(10.0))
    refused = await asyncio.wait_for(waiting, WAIT_S)
    assert refused.code == "shutting_down"
    answer.release()
    await closing
    assert rig.shop.ledger.residents() == ()


async def test_two_that_made_room_do_not_wait_for_each_other(
    rig: FleetRig, model: Declare, engine: FakeEngine
) -> None:
    engine.rescript(ignore_sigterm=True, devices=[f"Vulkan0: a card ({CARD_MIB} MiB, {CARD_MIB} MiB free)"])
    rig.declare(*(model(name) for name in "abcd"))
    await use(rig, "a")
    await use(rig, "b")
    waiting = [asyncio.create_task(rig.fleet.acquire(name)) for name in "cd"]
    async with asyncio.timeout(WAIT_S):
        while len(evicted(rig)) < 2:
            await asyncio.sleep(0.02)
    # Another program takes what would have been enough for the second.
    engine.rescript(devices=[f"Vulkan0: a card ({CARD_MIB} MiB, 2000 MiB free)"])
    done, left = await asyncio.wait(waiting, timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED)
    assert done
    for task in left:
        task.cancel()


async def test_requests_wait_for_a_replica_that_makes_room_though_another_found_none(
    rig: FleetRig, model: Declare
) -> None:
    rig.declare(model("m", n_ctx=2 * TOKENS, replicas=2), model("b", n_ctx=2 * TOKENS, queue_timeout_s=1.0))
    answer = await asyncio.wait_for(rig.fleet.acquire("m"), WAIT_S)
    other = asyncio.create_task(rig.fleet.acquire("b"))
    async with asyncio.timeout(WAIT_S):
        while not evicted(rig):
            await asyncio.sleep(0.02)
    again = asyncio.create_task(rig.fleet.acquire("m"))
    await asyncio.sleep(0.1)
    answer.release()
    (await asyncio.wait_for(other, WAIT_S)).release()
    (await asyncio.wait_for(again, WAIT_S)).release()


async def test_who_waits_moves_with_its_pool(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS), model("b", n_ctx=2 * TOKENS))
    answer = await rig.fleet.acquire("a")
    waiting = asyncio.create_task(rig.fleet.acquire("b"))
    await until_waiting(rig, "b")
    pool = replace(POOL, name="cards")
    rig.declare(*(model(name, n_ctx=2 * TOKENS, pool=pool) for name in "ab"))
    async with asyncio.timeout(WAIT_S):
        while not rig.shop.admission.waiting("cards"):
            await asyncio.sleep(0.02)
    view = rig.fleet.view("b")
    assert view is not None
    assert view.queue.position == 1
    answer.release()
    (await asyncio.wait_for(waiting, WAIT_S)).release()


async def test_an_edit_of_another_model_brings_back_nobody_who_made_room(
    rig: FleetRig, model: Declare
) -> None:
    models = [model("m", replicas=2), model("b")]
    rig.declare(*models)
    await use(rig, "m")
    async with asyncio.timeout(WAIT_S):
        while len(rig.shop.ledger.residents()) < 2:
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.5)
    await use(rig, "b")
    assert evicted(rig) == ["m"]
    rig.declare(*models, model("other"))
    await asyncio.sleep(1.0)
    assert evicted(rig) == ["m"]


async def test_what_loads_at_start_comes_back_without_sending_others_away(
    rig: FleetRig, model: Declare
) -> None:
    rig.declare(model("a", load="at-start"), model("b"), model("c", priority=5))
    await rig.until("a", State.READY)
    await asyncio.sleep(0.3)
    await use(rig, "b")
    await use(rig, "c")
    assert evicted(rig) == ["a"]
    await until_waiting(rig, "a")
    assert ready(rig) == {"b", "c"}
    rig.fleet.unload("b", by="test")
    await rig.until("a", State.READY)


async def test_what_found_no_room_is_not_failed_once_there_is_some(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS, pin=True), model("b", n_ctx=2 * TOKENS))
    await use(rig, "a")
    await refusal(rig, "b")
    assert rig.instance("b").state is State.FAILED
    rig.fleet.unload("a", by="test")
    view = await rig.until("b", State.STOPPED)
    assert view.last_error is None


async def test_other_limits_of_a_pool_start_nothing_that_was_unloaded(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", load="at-start"))
    await rig.until("a", State.READY)
    rig.fleet.unload("a", by="test")
    await rig.until("a", State.STOPPED)
    rig.declare(model("a", load="at-start", pool=replace(POOL, evict="never")))
    await asyncio.sleep(0.5)
    assert rig.instance("a").state is State.STOPPED
