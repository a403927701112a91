"""Which devices a launch may use."""

from __future__ import annotations

from typing import Any

import pytest

from framework.engines.child_env import declared_environment
from framework.planning.pool_hardware import (
    backend_of,
    gpu_budget,
    gpus_of,
    gpus_on_line,
    host_of,
    is_accelerated,
    is_host_pool,
)
from framework.values.device import Device
from framework.values.engine import EngineRef
from framework.values.reason import Reason, Refused
from framework.values.request import PoolLimits
from tests.engines.requests import a_request
from tests.support.launches import a_card, a_pool, host

BIG_UUID = "GPU-5f1c"
DEVICES = (
    Device("CUDA0", "gpu", 200, 100),
    Device("CUDA1", "gpu", 400, 150, uuid=BIG_UUID),
    Device("RPC0", "rpc", 90, 80, endpoint="a:1"),
    Device("RPC1", "rpc", 90, 80, endpoint="b:1"),
    Device("CPU", "cpu", 8000, 5000),
)


def names(pool: tuple[str, ...], picks: tuple[str, ...] | None = None) -> list[str]:
    asked = a_request(pool=PoolLimits("p", pool), devices=picks)
    return [device.name for device in gpus_of(DEVICES, asked)]


def refusal(pool: tuple[str, ...], picks: tuple[str, ...] | None, *unlisted: Reason) -> Refused:
    with pytest.raises(Refused) as caught:
        gpus_of(DEVICES, a_request(pool=PoolLimits("p", pool), devices=picks), unlisted)
    return caught.value


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        pytest.param(("auto",), ["CUDA0", "CUDA1"], id="all-of-this-machine"),
        pytest.param(("cpu",), [], id="host-memory"),
        pytest.param(("CUDA1",), ["CUDA1"], id="by-name"),
        pytest.param((BIG_UUID,), ["CUDA1"], id="by-uuid"),  # GP-01
        pytest.param(("CUDA0", "rpc://b:1"), ["RPC1", "CUDA0"], id="remote-ones-come-first"),
    ],
)
def test_devices_of_a_pool(pool: tuple[str, ...], expected: list[str]) -> None:
    assert names(pool) == expected


def test_a_pick_is_taken_out_of_the_pool() -> None:
    assert names(("auto",), ("CUDA1",)) == ["CUDA1"]


@pytest.mark.parametrize(
    ("pool", "picks", "missing"),
    [
        pytest.param(("auto",), ("CUDA1", "CUDA7"), ["CUDA7"], id="a-pick-that-is-not-there"),
        pytest.param(("CUDA0",), ("CUDA1",), ["CUDA1"], id="a-pick-outside-the-pool"),
        pytest.param(("CUDA5",), None, ["CUDA5"], id="a-pool-of-nothing"),
    ],
)
def test_names_without_a_device_are_refused(
    pool: tuple[str, ...], picks: tuple[str, ...] | None, missing: list[str]
) -> None:
    failure = refusal(pool, picks).failure
    assert (failure.reason.code, failure.retryable) == ("device_unmatched", False)
    assert failure.reason.evidence["requested"] == missing


def test_two_slices_are_no_pick_for_one_process() -> None:
    slices = tuple(Device(f"MIG-{n}", "gpu", 24, 24, uuid=f"MIG-{n}") for n in "ab")
    request = a_request(pool=PoolLimits("p", ("auto",)), devices=("MIG-a", "MIG-b"))
    with pytest.raises(Refused) as caught:
        gpus_of(slices, request)
    failure = caught.value.failure
    assert (failure.reason.code, failure.retryable) == ("one_slice_only", False)
    assert failure.reason.evidence["devices"] == ["MIG-a", "MIG-b"]


def test_a_server_that_is_away_is_named_and_tried_again() -> None:
    said = Reason("rpc_unreachable", "c:1 does not answer.", severity="error", evidence={"endpoint": "c:1"})
    failure = refusal(("rpc://c:1",), None, said).failure
    assert (failure.reason, failure.retryable) == (said, True)  # MN-07


def test_a_server_about_which_nothing_is_known_is_named_as_well() -> None:
    failure = refusal(("rpc://c:1",), None).failure
    assert (failure.reason.code, failure.retryable) == ("rpc_unreachable", True)


def test_a_line_names_devices_by_itself() -> None:
    assert [device.name for device in gpus_on_line(DEVICES, ("CUDA0", "RPC1"))] == ["RPC1", "CUDA0"]


def test_memory_comes_along() -> None:
    found = gpu_budget(DEVICES[0])
    assert (found.free_bytes, found.total_bytes, found.backend) == (100, 200, "cuda")
    assert host_of(DEVICES) is DEVICES[-1]
    assert host_of(DEVICES[:1]) is None


@pytest.mark.parametrize(("names_", "expected"), [(("cpu",), True), (("auto",), False), (("CUDA0",), False)])
def test_host_pools(names_: tuple[str, ...], *, expected: bool) -> None:
    assert is_host_pool(PoolLimits("p", names_)) is expected


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


@pytest.mark.parametrize(
    ("devices", "request_fields", "is_fast"),
    [
        pytest.param((a_card(0, 8.0), a_card(1, 8.0)), {}, True, id="two-cards"),
        pytest.param((Device("Metal", "gpu", 1 << 34, 1 << 34), host()), {}, True, id="metal"),
        pytest.param((host(),), {}, False, id="processor"),
        pytest.param(
            (a_card(0, 8.0),), {"memory_mode": "manual", "gpu_layers": 0}, False, id="no-layers-by-hand"
        ),
        pytest.param((a_card(0, 8.0),), {"pool": a_pool("cpu")}, False, id="pool-of-host-memory"),
        pytest.param((a_card(0, 8.0),), {"extra_args": ("-ngl", "0")}, False, id="no-layers-by-flag"),
        pytest.param((a_card(0, 8.0),), {"extra_args": ("-ngl", "9")}, True, id="layers-by-flag"),
        pytest.param((a_card(0, 8.0),), {"extra_args": ("--device", "none")}, False, id="no-device-by-flag"),
        pytest.param((a_card(0, 8.0),), {"extra_args": ("-dev", "CUDA0")}, True, id="device-by-flag"),
        pytest.param(
            (a_card(0, 8.0),), {"env": {"LLAMA_ARG_N_GPU_LAYERS": "0"}}, False, id="no-layers-by-variable"
        ),
        pytest.param((a_card(0, 8.0),), {"env": {"LLAMA_ARG_DEVICE": "none"}}, False, id="no-device-by-name"),
        pytest.param(
            (a_card(0, 8.0),),
            {"env": {"LLAMA_ARG_N_GPU_LAYERS": "0"}, "memory_mode": "manual", "gpu_layers": 9},
            True,
            id="variables-have-no-say-by-hand",
        ),
        pytest.param(
            (a_card(0, 8.0),),
            {"memory_mode": "manual", "gpu_layers": 0, "extra_args": ("-ngl", "9")},
            True,
            id="the-last-flag-counts",
        ),
        pytest.param(
            (a_card(0, 8.0),),
            {"env": {"LLAMA_ARG_DEVICE": "none"}, "memory_mode": "manual"},
            False,
            id="devices-by-name-have-a-say-by-hand",
        ),
        pytest.param((a_card(0, 8.0),), {"extra_args": ("-dev", "CPU")}, False, id="host-memory-by-flag"),
        pytest.param(
            (a_card(0, 8.0),),
            {"engine": EngineRef(env_passthrough=("LLAMA_ARG_*",))},
            False,
            id="no-layers-by-a-variable-that-is-let-through",
        ),
    ],
)
def test_where_decoding_runs_is_known_before_memory_is_planned(
    devices: tuple[Device, ...], request_fields: dict[str, Any], is_fast: bool
) -> None:
    request = a_request(**request_fields)
    declared = declared_environment(request, {"LLAMA_ARG_N_GPU_LAYERS": "0"})
    assert is_accelerated(request, devices, declared) is is_fast  # 05 §13.19
