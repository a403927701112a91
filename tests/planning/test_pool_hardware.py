"""Which devices a launch may use."""

from __future__ import annotations

import pytest

from framework.planning.pool_hardware import backend_of, hardware_of
from framework.values.device import Device
from framework.values.request import PoolLimits

HOST = Device("CPU", "cpu", 8000, 5000)
DEVICES = (
    Device("CUDA0", "gpu", 200, 100),
    Device("CUDA1", "gpu", 200, 150),
    Device("RPC0", "rpc", 90, 80),
    HOST,
)


@pytest.mark.parametrize(
    ("pool", "on_line", "expected"),
    [
        pytest.param(("auto",), None, ["RPC0", "CUDA0", "CUDA1"], id="all-remote-ones-first"),
        pytest.param(("cpu",), None, [], id="host-memory"),
        pytest.param(("CUDA1",), None, ["CUDA1"], id="by-name"),
        pytest.param(("auto",), (), [], id="the-line-says-none"),
        pytest.param(("cpu",), ("CUDA1",), ["CUDA1"], id="the-line-has-the-last-word"),
    ],
)
def test_devices_of_a_pool(
    pool: tuple[str, ...], on_line: tuple[str, ...] | None, expected: list[str]
) -> None:
    found = hardware_of(DEVICES, PoolLimits("p", pool), on_line)
    assert [gpu.name for gpu in found.gpus] == expected


def test_memory_comes_along() -> None:
    found = hardware_of(DEVICES, PoolLimits(), ("CUDA0",))
    assert (found.host_free_bytes, found.host_total_bytes) == (5000, 8000)
    assert (found.gpus[0].free_bytes, found.gpus[0].total_bytes, found.gpus[0].backend) == (100, 200, "cuda")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CUDA0", "cuda"),
        ("ROCm1", "cuda"),
        ("Vulkan0", "vulkan"),
        ("MTL0", "metal"),
        ("RPC0", "rpc"),
        ("SYCL0", "other"),
    ],
)
def test_backends_are_known_by_name(name: str, expected: str) -> None:
    assert backend_of(name) == expected
