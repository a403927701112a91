"""What the endpoint leaves on a lease to be measured: the times of an answer that ended as it should."""

from __future__ import annotations

import pytest

from tests.proxy.scripted_engine import TIMINGS, Call, Script, chunk, closing, finish, piece, role
from tests.proxy.world import World


async def two_choices(call: Call) -> None:
    """An answer with `n` = 2."""
    other = {"index": 1, "delta": {}, "finish_reason": "stop"}
    await call.start_stream()
    await call.events(role(), piece("a"), finish(), chunk(choices=[other]), closing())
    await call.end()


async def cut_off(call: Call) -> None:
    """An answer whose engine goes away, with times for each token."""
    await call.start_stream()
    await call.events(role(), {**piece("a"), "timings": TIMINGS})
    call.drop()


async def without_times(call: Call) -> None:
    """An answer of a build that tells no times."""
    await call.start_stream()
    await call.events(role(), piece("a"), finish())
    await call.end()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_whole_answer_leaves_its_times_before_the_lease_is_given_back(
    world: World, stream: bool
) -> None:
    await world.chat(stream=stream)
    (lease,) = world.fleet.leases
    assert lease.released
    assert lease.timings == TIMINGS


@pytest.mark.parametrize("script", [two_choices, cut_off, without_times])
async def test_other_answers_leave_none(world: World, script: Script) -> None:
    world.engine.scripts = [script]
    await world.chat(stream=True)
    assert world.fleet.leases[0].timings is None
