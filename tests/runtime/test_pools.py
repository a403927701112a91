"""Many models on one device: who starts, who makes room, who waits, who is refused (04 §16, 08 §2.10)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from framework.runtime.lease import Lease, LeaseRefused
from framework.values.instance import State
from framework.values.request import ModelRequest, PoolLimits
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, alive, request_for
from tests.support.fakes import FakeEngine
from tests.support.sized_models import write_large_model

# A context of 8192 tokens takes 1 GiB, computing and the runtime some more: two such models fit, not three.
CARD_MIB = 4000
TOKENS = 8192
POOL = PoolLimits("gpu", ("auto",), offload="forbid")
WAIT_S = 60.0

Declare = Callable[..., ModelRequest]


@pytest.fixture
def engine(fake_engine: MakeFake) -> FakeEngine:
    """Sees one card, which never lists less as free, like several real ones."""
    return fake_engine(devices=[f"Vulkan0: a card ({CARD_MIB} MiB, {CARD_MIB} MiB free)"])


@pytest.fixture
def model(engine: FakeEngine, tmp_path: Path) -> Declare:
    """Makes the request for a model of the pool, on demand unless told otherwise."""
    path = write_large_model(tmp_path / "large.gguf")

    def make(name: str, *, pool: PoolLimits = POOL, n_ctx: int = TOKENS, **live: object) -> ModelRequest:
        settings = {"load": "on-demand", "queue_timeout_s": 120.0, **live}
        return request_for(engine, path, name, live=settings, n_ctx=n_ctx, slots=1, pool=pool)

    return make


async def use(rig: FleetRig, name: str) -> None:
    """One request that is over at once, and the pause after which nobody takes it for one of several."""
    (await asyncio.wait_for(rig.fleet.acquire(name), WAIT_S)).release()
    await asyncio.sleep(0.15)


def ready(rig: FleetRig) -> set[str]:
    return {view.request.id for view in rig.fleet.views() if view.state is State.READY}


def evicted(rig: FleetRig) -> list[str]:
    return [str(event.model) for event in rig.events.recent(kind="evicted", limit=100)]


async def refusal(rig: FleetRig, name: str) -> LeaseRefused:
    with pytest.raises(LeaseRefused) as refused:
        await asyncio.wait_for(rig.fleet.acquire(name), WAIT_S)
    return refused.value


async def until_waiting(rig: FleetRig, name: str) -> str:
    """Wait until a model waits for memory; what it waits for."""
    async with asyncio.timeout(WAIT_S):
        while True:
            seen = rig.changes.version
            found = [w for w in rig.shop.admission.waiting("gpu") if w.instance.request.id == name]
            if found and found[0].verdict is not None:
                return found[0].verdict.message
            await rig.changes.wait(seen)


async def test_models_that_fit_together_stay_together(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a"), model("b"))
    await use(rig, "a")
    await use(rig, "b")
    assert ready(rig) == {"a", "b"}
    assert evicted(rig) == []


async def test_the_least_recently_used_one_makes_room(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a"), model("b"), model("c"))
    for name in ("a", "b", "a", "c"):
        await use(rig, name)
    assert ready(rig) == {"a", "c"}
    assert evicted(rig) == ["b"]
    assert rig.event("evicted").data["for"] == "c"


async def test_a_model_that_answers_is_waited_for_and_never_cut(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS), model("b", n_ctx=2 * TOKENS))
    answer = await rig.fleet.acquire("a")
    waiting = asyncio.create_task(rig.fleet.acquire("b"))
    assert "a" in await until_waiting(rig, "b")
    await asyncio.sleep(0.5)
    assert not answer.revoked.done()
    assert ready(rig) == {"a"}
    answer.release()
    (await asyncio.wait_for(waiting, WAIT_S)).release()
    assert ready(rig) == {"b"}
    assert rig.event("evicted").data["leases"] == 0


async def test_a_pinned_model_stays_and_the_other_is_told_why(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS, pin=True), model("b", n_ctx=2 * TOKENS))
    await use(rig, "a")
    pid = rig.instance("a").pid
    refused = await refusal(rig, "b")
    assert refused.code == "no_memory"
    assert refused.retry_after_s is not None
    assert refused.reason is not None
    assert refused.reason.code == "capacity_pinned"
    assert "a" in refused.message
    assert rig.instance("a").pid == pid


async def test_a_pinned_model_stays_while_others_take_turns(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("p", pin=True), model("a"), model("b"))
    await use(rig, "p")
    pid = rig.instance("p").pid
    for name in ("a", "b", "a"):
        await use(rig, name)
    assert rig.instance("p").pid == pid
    assert evicted(rig) == ["a", "b"]


async def test_a_higher_priority_keeps_its_place(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS, priority=5), model("b", n_ctx=2 * TOKENS))
    await use(rig, "a")
    assert (await refusal(rig, "b")).code == "no_memory"
    assert ready(rig) == {"a"}


async def test_the_lower_priority_leaves_first(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("low"), model("high", priority=1), model("c", priority=1))
    await use(rig, "high")
    await use(rig, "low")
    await use(rig, "c")
    assert evicted(rig) == ["low"]


async def test_a_model_loaded_by_command_is_no_hidden_pin(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS, load="manual"), model("b", n_ctx=2 * TOKENS))
    rig.fleet.load("a", by="test")
    await rig.until("a", State.READY)
    await asyncio.sleep(0.15)
    await use(rig, "b")
    assert evicted(rig) == ["a"]
    assert (await refusal(rig, "a")).code == "model_not_loaded"


async def test_eviction_can_be_forbidden(rig: FleetRig, model: Declare) -> None:
    pool = replace(POOL, evict="never")
    rig.declare(model("a", pool=pool, n_ctx=2 * TOKENS), model("b", pool=pool, n_ctx=2 * TOKENS))
    await use(rig, "a")
    assert (await refusal(rig, "b")).code == "no_memory"
    assert ready(rig) == {"a"}


async def test_what_can_never_fit_is_refused_with_figures_and_without_a_process(
    rig: FleetRig, model: Declare, engine: FakeEngine
) -> None:
    rig.declare(model("a", n_ctx=8 * TOKENS))
    refused = await refusal(rig, "a")
    assert refused.reason is not None
    assert refused.reason.code == "does_not_fit"
    assert "GiB" in refused.reason.message
    assert engine.starts() == []


async def test_starts_that_come_together_never_count_the_same_bytes(
    rig: FleetRig, model: Declare, engine: FakeEngine
) -> None:
    engine.rescript(load_s=0.5, devices=[f"Vulkan0: a card ({CARD_MIB} MiB, {CARD_MIB} MiB free)"])
    rig.declare(*(model(name, n_ctx=2 * TOKENS) for name in "abc"))
    most = 0

    async def ask(name: str) -> None:
        nonlocal most
        lease = await asyncio.wait_for(rig.fleet.acquire(name), WAIT_S)
        held = [r for r in rig.shop.ledger.residents() if r.holding != "promised"]
        most = max(most, sum(resident.bytes.get("Vulkan0", 0) for resident in held))
        lease.release()

    await asyncio.gather(*(ask(name) for name in "abc"))
    assert 0 < most <= CARD_MIB << 20
    assert len(engine.starts()) == 3


async def test_requests_of_one_model_are_batched_over_swaps(rig: FleetRig, model: Declare) -> None:
    rig.declare(*(model(name, n_ctx=2 * TOKENS, max_queue=20) for name in "abc"))
    order: list[str] = []

    async def ask(name: str) -> None:
        lease = await asyncio.wait_for(rig.fleet.acquire(name), WAIT_S)
        order.append(name)
        await asyncio.sleep(0.05)
        lease.release()

    await asyncio.gather(*(ask(name) for name in "abcabcabc"))
    swaps = sum(one != other for one, other in pairwise(order))
    assert swaps == 2
    assert len(evicted(rig)) == 2


async def test_an_overdue_model_gets_its_turn_from_one_that_is_never_idle(
    rig: FleetRig, model: Declare
) -> None:
    rig.declare(
        model("busy", n_ctx=2 * TOKENS), model("b", n_ctx=2 * TOKENS, queue_timeout_s=1.0), server=None
    )
    stop = asyncio.Event()
    leases: list[Lease] = []

    async def keep_busy() -> None:
        while not stop.is_set():
            lease = await rig.fleet.acquire("busy")
            leases.append(lease)
            await asyncio.sleep(0.2)
            lease.release()

    clients = [asyncio.create_task(keep_busy()) for _ in range(3)]
    await rig.until("busy", State.READY)
    (await asyncio.wait_for(rig.fleet.acquire("b"), WAIT_S)).release()
    stop.set()
    await asyncio.wait_for(asyncio.gather(*clients), WAIT_S)
    assert evicted(rig)[0] == "busy"
    assert not any(lease.revoked.done() for lease in leases)


async def test_a_start_that_nobody_waits_for_any_more_is_given_up(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS), model("b", n_ctx=2 * TOKENS))
    answer = await rig.fleet.acquire("a")
    waiting = asyncio.create_task(rig.fleet.acquire("b"))
    await until_waiting(rig, "b")
    waiting.cancel()
    view = await rig.until("b", State.STOPPED)
    assert view.pid is None
    assert rig.shop.admission.waiting("gpu") == ()
    answer.release()
    await asyncio.sleep(0.5)
    assert ready(rig) == {"a"}


async def test_what_waits_shows_its_place_and_what_it_waits_for(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS), model("b", n_ctx=2 * TOKENS))
    answer = await rig.fleet.acquire("a")
    waiting = asyncio.create_task(rig.fleet.acquire("b"))
    await until_waiting(rig, "b")
    view = rig.fleet.view("b")
    assert view is not None
    assert view.queue.position == 1
    assert rig.event("waiting").reason is not None
    answer.release()
    (await asyncio.wait_for(waiting, WAIT_S)).release()


async def test_models_that_load_at_start_come_up_by_priority(rig: FleetRig, model: Declare) -> None:
    rig.declare(
        model("last", n_ctx=2 * TOKENS, load="at-start"),
        model("first", n_ctx=2 * TOKENS, load="at-start", priority=9),
    )
    await rig.until("first", State.READY)
    assert "first" in await until_waiting(rig, "last")
    assert (await refusal(rig, "last")).code == "no_memory"


async def test_what_loads_at_start_comes_back_when_memory_is_free(rig: FleetRig, model: Declare) -> None:
    rig.declare(
        model("last", n_ctx=2 * TOKENS, load="at-start"),
        model("first", n_ctx=2 * TOKENS, load="at-start", priority=9),
    )
    await until_waiting(rig, "last")
    rig.fleet.unload("first", by="test")
    await rig.until("last", State.READY)


async def test_a_replacement_may_use_what_its_model_holds(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS, load="at-start"))
    old = await rig.until("a", State.READY)
    rig.declare(model("a", n_ctx=2 * TOKENS + 256, load="at-start"))
    async with asyncio.timeout(WAIT_S):
        while rig.instance("a").pid in (old.pid, None):
            await asyncio.sleep(0.02)
    new = await rig.until("a", State.READY)
    assert new.plan is not None
    assert new.plan.fit.context == 2 * TOKENS + 256
    assert alive([old.pid or 0]) == []


async def test_a_budget_is_a_cap_below_what_the_device_has(rig: FleetRig, model: Declare) -> None:
    pool = replace(POOL, budget_bytes=2000 << 20)
    rig.declare(model("a", pool=pool), model("b", pool=pool))
    await use(rig, "a")
    await use(rig, "b")
    assert evicted(rig) == ["a"]


async def test_a_pool_of_another_name_keeps_its_residents(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("a", n_ctx=2 * TOKENS), model("b", n_ctx=2 * TOKENS))
    await use(rig, "a")
    pool = replace(POOL, name="cards")
    rig.declare(model("a", n_ctx=2 * TOKENS, pool=pool), model("b", n_ctx=2 * TOKENS, pool=pool))
    assert ready(rig) == {"a"}
    await use(rig, "b")
    assert evicted(rig) == ["a"]


async def test_memory_is_given_back_however_a_start_ends(
    rig: FleetRig, model: Declare, engine: FakeEngine
) -> None:
    engine.rescript(exit_code=1, devices=[f"Vulkan0: a card ({CARD_MIB} MiB, {CARD_MIB} MiB free)"])
    rig.declare(model("a"))
    await refusal(rig, "a")
    assert rig.shop.ledger.residents() == ()
