"""What pages say about the memory of a pool: what is ours, and what is not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from framework.runtime.pool_views import Seen, pool_view
from framework.values.device import Device
from framework.values.pool import DeviceUse, Holding, Resident
from framework.values.request import PoolLimits

GIB = 1 << 30


@pytest.fixture
def wrapped() -> Iterator[tuple[int, int]]:
    """Numbers of a wrapper, started as engines are, and of the process that it started."""
    script = "sleep 600 & echo $!; wait"
    with subprocess.Popen(
        ["/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as wrapper:
        assert wrapper.stdout is not None
        inner = int(wrapper.stdout.readline())
        try:
            yield wrapper.pid, inner
        finally:
            os.killpg(wrapper.pid, 9)


def use_of(used_by_pid: dict[int, int], ours: int) -> DeviceUse:
    device = Device("CUDA0", "gpu", 24 * GIB, 12 * GIB, used_by_pid=used_by_pid)
    view = pool_view(PoolLimits("default"), [device], (), (), Seen(frozenset({ours}), {}), 0)
    return view.devices[0]


def test_memory_of_a_process_that_a_wrapper_started_is_ours(wrapped: tuple[int, int]) -> None:
    wrapper, inner = wrapped
    use = use_of({inner: 5 * GIB, os.getpid(): 7 * GIB}, wrapper)
    assert (use.measured_bytes, use.foreign_bytes) == (5 * GIB, 7 * GIB)


def test_memory_of_a_process_that_is_gone_is_not_ours() -> None:
    nobody = 1 << 22  # above the largest number that the system gives
    assert use_of({nobody: 5 * GIB}, os.getpid()).foreign_bytes == 5 * GIB


HOST = Device("CPU", "cpu", 64 * GIB, 50 * GIB)


def host_use(seen: Seen, *residents: Resident) -> DeviceUse:
    return pool_view(PoolLimits("default"), [HOST], residents, (), seen, 0).devices[0]


def resident(holding: Holding = "resident") -> Resident:
    return Resident("m.0@1", "m", 0, "default", holding, {"CPU": 8 * GIB})


def test_what_the_system_says_of_a_process_comes_before_what_its_engine_said() -> None:
    seen = Seen(frozenset(), {"m.0@1": {"CPU": 8 * GIB}}, {"m.0@1": {"CPU": 9 * GIB}})
    use = host_use(seen, resident())
    assert (use.measured_bytes, use.foreign_bytes) == (9 * GIB, 5 * GIB)


def test_a_process_that_loads_is_no_other_program() -> None:
    seen = Seen(frozenset(), {}, {"m.0@1": {"CPU": 6 * GIB}})
    use = host_use(seen, resident("promised"))
    assert (use.measured_bytes, use.foreign_bytes) == (6 * GIB, 8 * GIB)
    assert host_use(Seen(frozenset(), {}), resident("promised")).measured_bytes == 0


def test_a_process_that_nobody_has_seen_leaves_it_open() -> None:
    use = host_use(Seen(frozenset(), {}), resident())
    assert (use.measured_bytes, use.foreign_bytes) == (None, None)
