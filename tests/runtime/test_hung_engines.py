"""An engine that answers nobody is passed over, then ended; one that only is slow is not (PL-03)."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from framework.runtime.health_watch import HELD_UP_S
from framework.runtime.lease import Lease
from framework.runtime.silence import HealthLimits
from framework.values.instance import State
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, alive, request_for
from tests.support.waiting import eventually

# Seconds of a test instead of minutes.
SOON = HealthLimits(
    every_s=0.2,
    quick_s=0.5,
    patient_s=0.5,
    pause_s=0.1,
    silent_after_s=1.2,
    busy_after_s=4.0,
    stalled_after_s=2.0,
    fatal_after_s=0.8,
)
PATIENT = HealthLimits(
    every_s=0.2, quick_s=0.5, patient_s=0.5, pause_s=0.1, silent_after_s=60.0, busy_after_s=60.0
)
BODY = {"messages": [{"role": "user", "content": "hello"}], "stream": True}
CHAT = "/v1/chat/completions"
OUT_OF_MEMORY = "0.09.000.000 E ggml_vulkan: Device memory allocation of size 1048576 failed."
LOST = "0.09.000.001 E ggml_vulkan: vk::Queue::submit: ErrorDeviceLost"


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """The process does nothing meanwhile, unless it is ended."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if alive([pid]):
            os.kill(pid, signal.SIGCONT)


def is_silent(rig: FleetRig, replica: int = 0) -> bool:
    """Whether a person sees that it does not answer."""
    result = rig.instance("m", replica).result
    return result is not None and "engine_silent" in [reason.code for reason in result.degradations]


async def ask(lease: Lease) -> str:
    """One chat over a lease, to its end."""
    lease.listens = True
    try:
        async with aiohttp.ClientSession() as session:
            url = f"{lease.base_url}{CHAT}"
            async with session.post(url, json=BODY, headers=dict(lease.headers)) as answer:
                return await answer.text()
    finally:
        lease.release()


async def test_a_stopped_engine_is_ended_and_started_again(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.shop.health = SOON
    rig.declare(request_for(fake_engine(), tiny_gguf))
    first = await rig.until("m", State.READY)
    assert first.pid is not None
    with stopped(first.pid):
        await rig.until("m", State.BACKOFF, State.PENDING, State.STARTING)
        second = await rig.until("m", State.READY)
        assert alive([first.pid]) == []
    assert (second.generation, second.restarts) == (2, 1)
    reason = rig.event("exited").reason
    assert reason is not None
    assert reason.code == "engine_hung"
    assert "its process is stopped (SIGSTOP or a debugger)" in reason.message
    assert rig.kinds("m").count("exited") == 1


async def test_while_it_is_silent_this_is_shown_and_an_answer_ends_that(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.shop.health = PATIENT
    rig.declare(request_for(fake_engine(), tiny_gguf))
    ready = await rig.until("m", State.READY)
    assert ready.pid is not None

    with stopped(ready.pid):
        await eventually(lambda: is_silent(rig), what="the silence to show")
        await eventually(lambda: "health" in rig.kinds("m"), what="an event")
    await eventually(lambda: not is_silent(rig), what="the silence to end")
    assert [e.message for e in rig.events.recent(kind="health")][-1].startswith("answers health checks again")
    assert rig.instance("m").generation == 1


async def test_time_in_which_we_stood_still_ourselves_does_not_count(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    """As after a sleep of the machine, or while this process is swapped out."""
    rig.shop.health = SOON
    rig.declare(request_for(fake_engine(), tiny_gguf))
    ready = await rig.until("m", State.READY)
    assert ready.pid is not None
    with stopped(ready.pid):
        await eventually(lambda: is_silent(rig), what="suspicion")
        for _ in range(3):
            time.sleep(HELD_UP_S + SOON.patient_s + 0.5)  # noqa: ASYNC251  nothing else may run either
            await asyncio.sleep(SOON.pause_s + 0.1)
    await eventually(lambda: not is_silent(rig), what="the silence to end")
    assert (rig.instance("m").generation, rig.instance("m").pid) == (1, ready.pid)


async def test_who_has_no_file_left_to_ask_with_blames_nobody(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.shop.health = SOON
    rig.declare(request_for(fake_engine(), tiny_gguf))
    ready = await rig.until("m", State.READY)
    assert ready.port is not None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        assert await rig.shop.client.answers(ready.port, 1.0) is None
        await asyncio.sleep(2 * SOON.silent_after_s)
        assert not is_silent(rig)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert await rig.shop.client.answers(ready.port, 5.0) is True
    assert rig.instance("m").generation == 1


async def test_new_requests_go_to_the_replica_that_answers(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.shop.health = PATIENT
    rig.declare(request_for(fake_engine(), tiny_gguf, live={"replicas": 2}))
    await eventually(lambda: all(_is_ready(rig, number) for number in (0, 1)), what="two replicas")
    kept = await rig.fleet.acquire("m")
    silent = 1 - kept.replica
    pid = rig.instance("m", silent).pid
    assert pid is not None
    with stopped(pid):
        await eventually(lambda: is_silent(rig, silent), what="suspicion")
        leases = [await rig.fleet.acquire("m") for _ in range(3)]
        assert {lease.replica for lease in leases} == {kept.replica}, "although it is the busier one"
    for lease in (kept, *leases):
        lease.release()


def _is_ready(rig: FleetRig, replica: int) -> bool:
    view = rig.fleet.view("m")
    return view is not None and any(i.replica == replica and i.state is State.READY for i in view.instances)


async def test_a_request_that_a_hung_engine_held_may_be_tried_again(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    """07 §9.2 step 9."""
    rig.shop.health = SOON
    rig.declare(request_for(fake_engine(), tiny_gguf))
    ready = await rig.until("m", State.READY)
    assert ready.pid is not None
    lease = await rig.fleet.acquire("m")
    with stopped(ready.pid):
        with pytest.raises(aiohttp.ClientError):
            await ask(lease)
        verdict = await rig.fleet.report_failure(lease, "close", opened=False)
        assert verdict.retry
        again = await rig.fleet.acquire("m")
    assert again.generation == 2
    assert "[DONE]" in await ask(again)


async def test_where_another_replica_serves_it_is_sent_there_at_once(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    """MN-05, 07 §9.2 step 5."""
    rig.shop.health = SOON
    engine = fake_engine()
    rig.declare(request_for(engine, tiny_gguf, live={"replicas": 2}))
    await eventually(lambda: all(_is_ready(rig, number) for number in (0, 1)), what="two replicas")
    engine.rescript(load_s=-1)
    lease = await rig.fleet.acquire("m")
    pid = rig.instance("m", lease.replica).pid
    assert pid is not None
    with stopped(pid):
        with pytest.raises(aiohttp.ClientError):
            await ask(lease)
        assert (await rig.fleet.report_failure(lease, "close", opened=False)).retry
        other = await rig.fleet.acquire("m")
        assert other.replica == 1 - lease.replica
        assert "[DONE]" in await ask(other)


async def test_an_engine_that_was_told_to_end_from_outside_and_waits_for_ever_is_ended(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    """15 §8: it takes no connections any more, and does not exit while a request is open."""
    rig.shop.health = SOON
    rig.declare(request_for(fake_engine(first_token_s=600.0), tiny_gguf))
    ready = await rig.until("m", State.READY)
    assert ready.pid is not None
    lease = await rig.fleet.acquire("m")
    asking = asyncio.create_task(ask(lease))
    await eventually(lambda: any(s.state != "idle" for s in rig.instance("m").slots), what="the request")
    os.kill(ready.pid, signal.SIGTERM)
    with pytest.raises(aiohttp.ClientError):
        await asking
    await rig.until("m", State.BACKOFF, State.PENDING, State.STARTING)
    reason = rig.event("exited").reason
    assert reason is not None
    assert reason.code == "engine_hung"


async def test_an_engine_that_hangs_while_it_drains_does_not_hold_up_what_waits_for_its_end(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.shop.health = SOON
    rig.declare(request_for(fake_engine(), tiny_gguf, live={"load": "on-demand"}))
    lease = await rig.fleet.acquire("m")
    pid = rig.instance("m").pid
    assert pid is not None
    with stopped(pid):
        rig.fleet.unload("m", by="a test")
        await rig.until("m", State.DRAINING)
        await rig.until("m", State.STOPPED)
    lease.release()
    assert alive([pid]) == []
    assert "respawn" not in rig.kinds("m"), "07 §9.8"
    told = rig.event("health").reason
    assert told is not None
    assert told.code == "engine_hung"


async def test_a_stopped_engine_ends_in_order_when_it_is_told_to(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf, live={"load": "on-demand"}))
    (await rig.fleet.acquire("m")).release()
    pid = rig.instance("m").pid
    assert pid is not None
    with stopped(pid):
        rig.fleet.unload("m", "now", by="a test")
        await rig.until("m", State.STOPPED)
    assert rig.event("stopped").data["signals"] == ["SIGTERM"]
    assert rig.event("stopped").message.endswith("exit code 0")


async def test_an_engine_that_takes_connections_and_answers_none_is_ended(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    """Not stopped: what is deaf after the start looks the same from outside."""
    rig.shop.health = SOON
    rig.declare(request_for(fake_engine(goes_deaf_after_s=1.0, faulty_starts=1), tiny_gguf))
    await rig.until("m", State.READY)
    await rig.until("m", State.BACKOFF, State.PENDING, State.STARTING)
    reason = rig.event("exited").reason
    assert reason is not None
    assert "and did no work" in reason.message
    assert (await rig.until("m", State.READY)).generation == 2


async def test_one_that_works_on_without_an_answer_is_given_longer(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.shop.health = SOON
    rig.declare(request_for(fake_engine(goes_deaf_after_s=1.0, works_deaf=True, faulty_starts=1), tiny_gguf))
    await rig.until("m", State.READY)
    await eventually(lambda: "health" in rig.kinds("m"), what="suspicion")
    await asyncio.sleep(SOON.silent_after_s)
    assert rig.instance("m").generation == 1
    await rig.until("m", State.BACKOFF, State.PENDING, State.STARTING)
    reason = rig.event("exited").reason
    assert reason is not None
    assert "and worked on" in reason.message


async def test_a_working_engine_with_more_requests_than_slots_is_waited_for(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    """They may hold all threads that could answer."""
    rig.shop.health = SOON
    rig.declare(request_for(fake_engine(goes_deaf_after_s=1.0, works_deaf=True), tiny_gguf, slots=1))
    await rig.until("m", State.READY)
    leases = [await rig.fleet.acquire("m") for _ in range(2)]
    await eventually(lambda: "health" in rig.kinds("m"), what="suspicion")
    await asyncio.sleep(SOON.busy_after_s + 1.0)
    assert rig.instance("m").generation == 1
    for lease in leases:
        lease.release()


@pytest.mark.parametrize("said", [OUT_OF_MEMORY, LOST], ids=["out-of-memory", "device-lost"])
async def test_a_request_that_gets_nothing_after_a_fatal_line_ends_with_the_line(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, said: str
) -> None:
    """PL-03: healthy endpoint, dead inference."""
    rig.shop.health = SOON
    fault = {"stderr": (said,), "at_request": 1}
    rig.declare(request_for(fake_engine(first_token_s=600.0, faults=(fault,)), tiny_gguf))
    await rig.until("m", State.READY)
    lease = await rig.fleet.acquire("m")
    with pytest.raises(aiohttp.ClientError):
        await ask(lease)
    verdict = await rig.fleet.report_failure(lease, "close", opened=False)
    assert (verdict.retry, verdict.code) == (False, "instance_restarting")
    assert verdict.reason is not None
    assert verdict.reason.code == "engine_wedged"
    assert said.partition(" E ")[2] in verdict.reason.message
    second = await rig.until("m", State.READY)
    assert (second.generation, second.restarts) == (2, 1)
    await asyncio.sleep(2 * SOON.stalled_after_s)
    assert rig.instance("m").generation == 2, "replaced once: nobody asks, so nothing hangs"


async def test_a_slot_that_works_on_nothing_is_noticed_without_any_line(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.shop.health = SOON
    rig.declare(request_for(fake_engine(first_token_s=600.0), tiny_gguf, live={"stall_timeout_s": 2.0}))
    await rig.until("m", State.READY)
    lease = await rig.fleet.acquire("m")
    with pytest.raises(aiohttp.ClientError):
        await ask(lease)
    await rig.until("m", State.BACKOFF, State.PENDING, State.STARTING)
    reason = rig.event("exited").reason
    assert reason is not None
    assert reason.code == "engine_wedged"
    assert "its requests got nothing" in reason.message


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"first_token_s": 3.0, "busy_while_silent": True}, id="works"),
        pytest.param({"tokens": 12, "token_interval_s": 0.5}, id="a-token-now-and-then"),
    ],
)
async def test_a_slow_engine_is_left_alone(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, facts: dict[str, Any]
) -> None:
    rig.shop.health = HealthLimits(every_s=0.2, stalled_after_s=1.5, fatal_after_s=0.5)
    rig.declare(request_for(fake_engine(**facts), tiny_gguf, live={"stall_timeout_s": 1.5}))
    await rig.until("m", State.READY)
    assert "[DONE]" in await ask(await rig.fleet.acquire("m"))
    assert rig.instance("m").generation == 1


async def test_a_client_that_takes_nothing_is_no_fault_of_the_engine(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.shop.health = SOON
    rig.declare(request_for(fake_engine(first_token_s=600.0), tiny_gguf, live={"stall_timeout_s": 1.0}))
    await rig.until("m", State.READY)
    lease = await rig.fleet.acquire("m")
    asking = asyncio.create_task(ask(lease))
    await asyncio.sleep(0.1)
    lease.listens = False
    await asyncio.sleep(2 * SOON.stalled_after_s)
    assert rig.instance("m").generation == 1
    asking.cancel()
    await asyncio.wait({asking})
