"""Launch plans with the memory that they will take, from fake devices (03, 04 §10)."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from framework.engines.probe import CapabilityCache
from framework.hardware.devices import DeviceList
from framework.planning import launch_place
from framework.runtime.planner import FactPlanner
from framework.values.device import Device
from framework.values.manifest import Manifest
from framework.values.plan import FitPlan, LaunchPlan
from framework.values.pool import Resident
from framework.values.reason import Reason, Refused
from framework.values.request import ModelRequest, PoolLimits
from tests.conftest import MakeFake
from tests.engines.programs import program
from tests.models.gguf_bytes import STRING, U32, Tensor, gguf, pair
from tests.runtime.conftest import request_for
from tests.support.fakes import FakeEngine

TRAINED = 131_072
MIB = 1 << 20


def card(free_mib: int) -> str:
    return f"CUDA0: a card (24000 MiB, {free_mib} MiB free)"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A few kilobytes whose header asks for a cache of 16 GiB."""
    header = [pair("general.architecture", STRING, "llama")]
    values = {
        "block_count": 32,
        "context_length": TRAINED,
        "embedding_length": 4096,
        "feed_forward_length": 14_336,
        "attention.head_count": 32,
        "attention.head_count_kv": 8,
        "vocab_size": 128_256,
    }
    header += [pair(f"llama.{name}", U32, value) for name, value in values.items()]
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(*header, tensors=(Tensor("token_embd.weight", (8, 4)),), data=128))
    return path


@pytest.fixture
def gpu(fake_engine: MakeFake) -> FakeEngine:
    """An engine that sees one card with 14 GiB free."""
    return fake_engine(devices=[card(14_336)])


def planner(directory: Path) -> FactPlanner:
    return FactPlanner(CapabilityCache(), dict(os.environ), base_dir=directory)


async def plan(asked: ModelRequest, directory: Path) -> LaunchPlan:
    return await planner(directory).plan(asked, 0)


def codes(found: LaunchPlan) -> set[str]:
    return {reason.code for reason in found.reasons}


async def test_what_fits_on_a_gpu_is_planned_there(gpu: FakeEngine, model: Path, tmp_path: Path) -> None:
    found = await plan(request_for(gpu, model, n_ctx=8192, slots=4), tmp_path)
    assert (found.fit.fits, found.fit.context, found.fit.slots) == (True, 8192, 4)
    assert set(found.fit.total_bytes) == {"CUDA0", "CPU"}
    assert {"kv", "compute", "runtime"} <= {line.label for line in found.fit.lines if line.device == "CUDA0"}


async def test_an_automatic_context_is_what_fits(gpu: FakeEngine, model: Path, tmp_path: Path) -> None:
    found = await plan(request_for(gpu, model, n_ctx=0), tmp_path)
    assert found.fit.context is not None
    assert 8192 < found.fit.context < TRAINED
    assert "context_fitted" in codes(found)


async def test_a_context_above_the_trained_one_is_kept_and_told(
    gpu: FakeEngine, model: Path, tmp_path: Path
) -> None:
    found = await plan(request_for(gpu, model, n_ctx=2 * TRAINED), tmp_path)
    reason = next(reason for reason in found.reasons if reason.code == "context_above_training")
    assert reason.evidence == {"asked_tokens": 2 * TRAINED, "trained_tokens": TRAINED}  # FM-23
    assert found.fit.context == 2 * TRAINED


async def test_a_header_of_absurd_numbers_is_a_reason(gpu: FakeEngine, model: Path, tmp_path: Path) -> None:
    header = [pair("llama.block_count", U32, 2**31 - 1), pair("llama.context_length", U32, 2**31 - 1)]
    tensors = (Tensor("token_embd.weight", (8, 4)),)
    model.write_bytes(gguf(pair("general.architecture", STRING, "llama"), *header, tensors=tensors, data=128))
    found = await plan(request_for(gpu, model), tmp_path)
    assert (found.fit, "planning_fault" in codes(found)) == (FitPlan(), True)


async def test_the_command_line_says_what_was_decided(gpu: FakeEngine, model: Path, tmp_path: Path) -> None:
    found = await plan(request_for(gpu, model, n_ctx=0), tmp_path)
    line = " ".join(found.argv)
    assert f"-c {found.fit.context}" in line
    assert "--device CUDA0 --gpu-layers 33 --fit off" in line


async def test_free_memory_changes_the_plan_and_never_its_fingerprint(
    gpu: FakeEngine, model: Path, tmp_path: Path
) -> None:
    asked = request_for(gpu, model, n_ctx=0)
    found = []
    for free_mib in (23_500, 14_336, 3000):
        gpu.rescript(devices=[card(free_mib)])
        found.append(await plan(asked, tmp_path))
    assert len({one.fit.context for one in found}) == 3
    assert len({one.fingerprint for one in found}) == 1


async def test_a_pool_of_host_memory_asks_no_engine_for_devices(
    fake_engine: MakeFake, model: Path, tmp_path: Path
) -> None:
    engine = fake_engine(devices=[card(14_336)])
    found = await plan(request_for(engine, model, n_ctx=4096, pool=PoolLimits("p", ("cpu",))), tmp_path)
    assert (set(found.fit.total_bytes), found.fit.gpu_layers) == ({"CPU"}, 0)


async def test_variables_of_the_model_decide_what_the_engine_sees(
    gpu: FakeEngine, model: Path, tmp_path: Path
) -> None:
    seen = json.dumps(["Vulkan3: another card (9000 MiB, 8000 MiB free)"])
    asked = request_for(gpu, model, env={"FAKE_DEVICES": seen})
    assert set((await plan(asked, tmp_path)).fit.total_bytes) == {"Vulkan3", "CPU"}


async def test_slots_and_cache_types_of_the_plan_are_those_of_the_line(
    gpu: FakeEngine, model: Path, tmp_path: Path
) -> None:
    found = await plan(request_for(gpu, model, slots=3, extra_args=("-ctk", "q8_0")), tmp_path)
    assert (found.fit.slots, found.fit.cache_types) == (3, ("q8_0", "q8_0"))


async def test_adapters_take_memory(gpu: FakeEngine, model: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter.gguf"
    adapter.write_bytes(b"x" * MIB)
    found = await plan(request_for(gpu, model, adapters=((adapter, 1.0),)), tmp_path)
    assert [line.bytes for line in found.fit.lines if line.label == "adapter"] == [MIB]


async def test_a_model_that_does_not_fit_is_planned_with_remedies(
    gpu: FakeEngine, model: Path, tmp_path: Path
) -> None:
    asked = request_for(gpu, model, n_ctx=TRAINED, memory_mode="manual", gpu_layers=33)
    found = await plan(asked, tmp_path)
    assert found.fit.fits is False
    assert found.fit.remedies
    assert "does_not_fit" in codes(found)


async def test_devices_that_are_not_known_are_told(model: Path, tmp_path: Path) -> None:
    engine = tmp_path / "llama-server"
    engine.write_text("#!/bin/sh\nexit 7\n")
    engine.chmod(0o755)
    found = await plan(request_for(engine, model, n_ctx=4096), tmp_path)
    assert "devices_unknown" in codes(found)
    assert found.fit.context == 4096


async def test_a_fault_in_memory_planning_keeps_no_model_from_being_started(
    gpu: FakeEngine, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(launch_place, "Search", fails)
    found = await plan(request_for(gpu, model), tmp_path)
    assert (found.fit, "planning_fault" in codes(found)) == (FitPlan(), True)


async def test_a_changed_file_is_planned_anew(gpu: FakeEngine, model: Path, tmp_path: Path) -> None:
    one = planner(tmp_path)
    asked = request_for(gpu, model, n_ctx=4096)
    before = await one.plan(asked, 0)
    model.write_bytes(model.read_bytes() + bytes(MIB))
    after = await one.plan(asked, 0)
    assert after.fingerprint != before.fingerprint
    assert after.fit == replace(before.fit, budget_bytes=after.fit.budget_bytes)


async def test_a_place_is_found_beside_those_that_hold_memory(
    gpu: FakeEngine, model: Path, tmp_path: Path
) -> None:
    one = planner(tmp_path)
    prepared = await one.prepare(request_for(gpu, model, n_ctx=8192), 0)
    devices = (await one.look(prepared)).devices
    alone = one.place(prepared, devices, freedom="whole")
    other = Resident("o.0.1", "o", 0, "default", "promised", {"CUDA0": 14_000 * MIB})
    with pytest.raises(Refused) as caught:
        one.place(prepared, devices, [other], freedom="whole")
    assert alone.placement.devices == ("CUDA0",)
    assert caught.value.failure.reason.evidence["held_bytes"] == {"CUDA0": {"o.0.1": 14_000 * MIB}}


async def test_a_ceiling_makes_a_plan_smaller(gpu: FakeEngine, model: Path, tmp_path: Path) -> None:
    one = planner(tmp_path)
    prepared = await one.prepare(request_for(gpu, model, n_ctx=0), 0)
    ceilings = {"CUDA0": 8000 * MIB}
    plan = one.place(prepared, prepared.devices.devices, freedom="shrunk", ceilings=ceilings)
    assert plan.placement.needs_bytes["CUDA0"] <= ceilings["CUDA0"]


async def test_a_pool_without_servers_asks_none(gpu: FakeEngine, model: Path, tmp_path: Path) -> None:
    remote = PoolLimits("far", ("rpc://10.0.0.1:50052",))
    one = planner(tmp_path)
    one.adopt(Manifest(path=tmp_path / "serve.toml", sha256="", files=(), pools={"far": remote}))
    assert (await one.prepare(request_for(gpu, model), 0)).servers == ()


async def test_an_engine_may_not_be_sent_to_a_device_that_is_not_there(
    gpu: FakeEngine, model: Path, tmp_path: Path
) -> None:
    with pytest.raises(Refused) as caught:
        await plan(request_for(gpu, model, pool=PoolLimits("p", ("CUDA7",))), tmp_path)
    assert caught.value.failure.reason.code == "device_unmatched"


async def test_a_server_that_died_since_is_told_with_what_is_known_of_it(model: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    listing = f'[ -e {away} ] && exit 1; echo "  RPC0: $2 (24000 MiB, 24000 MiB free)"'
    engine = program(tmp_path, f'[ "$1" = --rpc ] || exit 0; {listing}')
    one = planner(tmp_path)
    request = replace(request_for(engine.entry, model, n_ctx=4096), pool=PoolLimits("far", ("rpc://a:1",)))
    prepared = await one.prepare(request, 0)
    away.touch()
    listed = await one.look(prepared, fresh=True)
    with pytest.raises(Refused) as caught:
        one.place(prepared, listed.devices, freedom="whole")
    assert caught.value.failure.reason == listed.why_not("a:1")


async def test_what_is_said_of_other_pools_servers_is_not_said_of_this_launch(
    gpu: FakeEngine, model: Path, tmp_path: Path
) -> None:
    mine = Device("RPC1", "rpc", 14_000 * MIB, 14_000 * MIB, endpoint="10.0.0.2:1")
    away = Reason("rpc_unreachable", "10.0.0.1:1 does not answer.", evidence={"endpoint": "10.0.0.1:1"})
    one = planner(tmp_path)
    pool = PoolLimits("far", ("rpc://10.0.0.2:1",))
    near = await one.prepare(request_for(gpu, model, n_ctx=4096), 0)
    request = replace(near.request, pool=pool)
    launch = replace(near.launch, plan=replace(near.launch.plan, request=request))
    far = replace(near, request=request, launch=launch, devices=DeviceList((), (away,)))
    found = one.place(far, (mine, *near.devices.devices), freedom="whole")
    assert found.placement.devices == ("RPC1",)
    assert "rpc_unreachable" not in codes(found)
