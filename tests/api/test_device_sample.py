"""One sample of the devices for all readers; it ages, its pools do not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from framework.api.answers import DevicesAnswer
from framework.api.device_sample import DeviceSample
from framework.reconcile.current import CurrentManifest
from framework.values.request import PoolLimits
from tests.api import samples


def current(*pools: PoolLimits) -> CurrentManifest:
    """A manifest in force with these pools."""
    manifest = replace(samples.manifest(), pools={pool.name: pool for pool in pools})
    return CurrentManifest(manifest, samples.NOON)


async def both() -> DevicesAnswer:
    return DevicesAnswer((samples.GPU, samples.CPU))


def sample_of(
    in_force: CurrentManifest,
    list_devices: Callable[[], Awaitable[DevicesAnswer]] = both,
    now: Callable[[], datetime] = lambda: samples.NOON,
) -> DeviceSample:
    return DeviceSample(in_force, list_devices, now=now)


def pools_of(answer: DevicesAnswer) -> dict[str, str | None]:
    return {device.name: device.pool for device in answer.devices}


def test_before_the_first_list_nothing_is_known() -> None:
    assert sample_of(current()).known() == DevicesAnswer()


async def test_a_sample_keeps_the_time_at_which_it_was_taken() -> None:
    times = iter([samples.NOON, samples.NOON + timedelta(hours=1)])
    sample = sample_of(current(), now=lambda: next(times))
    await sample.take()
    assert sample.known().sampled_at == samples.NOON


async def test_pools_are_those_of_the_manifest_in_force() -> None:
    in_force = current(PoolLimits("old"))
    sample = sample_of(in_force)
    assert pools_of(await sample.take()) == {"Vulkan0": "old", "CPU": None}
    in_force.manifest = current(PoolLimits("new", ("CPU", "cpu"))).manifest
    assert pools_of(sample.known()) == {"Vulkan0": None, "CPU": "new"}


async def test_callers_that_come_together_share_one_list() -> None:
    gate, asked = asyncio.Event(), 0

    async def slow() -> DevicesAnswer:
        nonlocal asked
        asked += 1
        await gate.wait()
        return await both()

    sample = sample_of(current(), slow)
    first, second = (asyncio.create_task(sample.take()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert len((await second).devices) == 2
    assert asked == 1


async def test_a_failure_to_list_is_a_reason_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> DevicesAnswer:
        raise OSError("no such driver")

    answer = await sample_of(current(), broken).take()
    assert [reason.code for reason in answer.reasons] == ["devices_unknown"]
    assert answer.sampled_at == samples.NOON
    assert "no such driver" in caplog.text


async def test_what_is_free_of_host_memory_is_looked_up_anew() -> None:
    free, at = [samples.CPU.free_bytes], [0.0]
    sample = DeviceSample(
        current(),
        both,
        host=lambda: replace(samples.CPU, free_bytes=free[0]),
        clock=lambda: at[0],
    )
    await sample.take()

    def known() -> dict[str, int]:
        return {device.name: device.free_bytes for device in sample.known().devices}

    before = known()
    free[0] -= 1000
    assert known() == before
    at[0] += 1
    assert known() == {**before, "CPU": before["CPU"] - 1000}
