"""What engines really hold: read from the system, shown, and told where it is more than was planned."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from framework.planning.memory_drift import over_plan, planned_bytes
from framework.runtime.memory_watch import MemoryWatch
from framework.runtime.process_memory import Held, Look, look, own_bytes
from framework.values.instance import State
from framework.values.request import PoolLimits
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, request_for

MIB, GIB = 1 << 20, 1 << 30
HELD_MIB = 300


@pytest.fixture
def holder() -> Iterator[int]:
    """A wrapper whose child holds some memory of its own, in a group as engines have."""
    child = f"held = bytearray(b'x') * ({HELD_MIB} << 20); print('held', flush=True); input()"
    wrapper = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", wrapper],
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process.pid
        process.stdin.write(b"\n")


def test_memory_of_a_process_that_a_wrapper_started_is_seen(holder: int) -> None:
    alone = own_bytes(holder)
    held = look([holder]).held[holder].host_bytes
    assert alone is not None
    assert held is not None
    assert alone < HELD_MIB * MIB < held < (HELD_MIB + 200) * MIB


def test_a_process_that_is_gone_is_left_out(tmp_path: Path) -> None:
    assert look([1 << 22]).held == {}
    assert own_bytes(1, tmp_path) is None


class Scripted:
    """Looks at processes that hold what a test says."""

    def __init__(self) -> None:
        self.host_bytes = 0

    def __call__(self, leaders: Iterable[int]) -> Look:
        return Look({pid: Held(self.host_bytes) for pid in leaders})


async def test_more_than_planned_is_told_once_and_only_if_it_stays(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf))
    before = await rig.until("m", State.READY)
    seen, clock = Scripted(), [time.monotonic()]
    rig.shop.ledger.clock = lambda: clock[0]
    watch = MemoryWatch(rig.fleet._all_instances, rig.shop, take=seen)

    async def after(seconds: float, host_bytes: int) -> list[str]:
        clock[0] += seconds
        seen.host_bytes = host_bytes
        await watch.look()
        result = rig.instance("m").result
        assert result is not None
        return [reason.code for reason in result.degradations]

    assert await after(0, 100 * GIB) == []
    assert await after(20, 100 * GIB) == []
    # It was only for a while.
    assert await after(20, MIB) == []
    assert await after(20, 100 * GIB) == []
    assert await after(29, 100 * GIB) == []
    assert await after(2, 100 * GIB) == ["memory_over_plan"]
    assert await after(60, 100 * GIB) == ["memory_over_plan"]
    assert rig.kinds("m").count("drift") == 1
    told = rig.event("drift")
    assert told.reason is not None
    assert told.reason.evidence["held_bytes"] == {"CPU": 100 * GIB}
    assert watch.held_bytes == {before.instance: {"CPU": 100 * GIB}}
    assert rig.instance("m").pid == before.pid


@pytest.mark.engine
async def test_a_real_engine_holds_what_was_planned(
    rig: FleetRig, engine_binary: Path, smollm2: Path
) -> None:
    pool = PoolLimits("cpu", ("cpu",))
    rig.declare(request_for(engine_binary, smollm2, slots=1, pool=pool))
    view = await rig.until("m", State.READY)
    assert view.plan is not None
    assert view.pid is not None
    held = look([view.pid]).held[view.pid].host_bytes
    assert held is not None
    planned = planned_bytes(view.plan, ())
    assert over_plan({"CPU": held}, planned) == {}
    # Its weights are pages of a file, which are not its own.
    assert held < smollm2.stat().st_size + planned["CPU"]
