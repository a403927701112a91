"""What a ready engine really runs: memory, context, what lies on a GPU, what drafts (06 §10-11)."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.runtime.readback import allocated_bytes
from framework.values.engine import EngineRef
from framework.values.instance import State
from framework.values.plan import LaunchResult, Placement
from framework.values.request import PoolLimits, SpecPolicy
from tests.api import samples
from tests.conftest import MakeFake
from tests.runtime.conftest import WAIT_S, FleetRig, request_for
from tests.support.working_models import write_working_model

MIB = 2**20


def test_devices_are_called_as_outside_of_the_process() -> None:
    placement = Placement(("CUDA3",), {"CUDA3": "CUDA0"})
    lines = [
        "0.0 I load_tensors:        CUDA0 model buffer size =    47.00 MiB",
        "0.0 I load_tensors:          CPU model buffer size =     2.00 MiB",
    ]
    assert allocated_bytes(samples.plan(placement=placement), lines) == {"CUDA3": 47 * MIB, "CPU": 2 * MIB}


def test_an_engine_that_does_not_say_took_nothing_that_is_known() -> None:
    assert allocated_bytes(samples.plan(), ["0.0 I srv  load_model: done"]) == {}


# What lies where, and what drafts

# Shaders for a device in software are compiled by the first start of a run that needs them.
SHADERS_S = 300.0
CARD = "Vulkan0: a card (8192 MiB, 8192 MiB free)"


@pytest.mark.parametrize(
    ("lost", "offload", "words"),
    [
        pytest.param("", True, (), id="on the card"),
        pytest.param("unseen", False, ("could not load its GPU library", "Reinstall"), id="no library"),
        pytest.param("unused", False, ("sees a GPU and put nothing", "Free memory"), id="left empty"),
    ],
)
async def test_a_model_that_silently_landed_on_the_cpu_is_flagged(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, lost: str, offload: bool, words: tuple[str, ...]
) -> None:
    rig.declare(request_for(fake_engine(devices=[CARD], card_mib=92.1, lost_devices=lost), tiny_gguf))
    result = await ready(rig)
    assert result.offload is offload
    told = [one for one in result.degradations if one.code == "cpu_fallback"]
    assert len(told) == (not offload)
    assert all(word in f"{one.message} {one.remedy}" for one in told for word in words)


async def test_without_a_gpu_there_is_nothing_to_say(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf))
    result = await ready(rig)
    assert (result.offload, result.degradations) == (None, ())


async def test_layers_that_are_kept_off_on_purpose_are_no_fallback(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(devices=[CARD])
    rig.declare(request_for(engine, tiny_gguf, memory_mode="manual", gpu_layers=0))
    result = await ready(rig)
    assert (result.offload, result.degradations) == (False, ())


@pytest.mark.parametrize(
    ("script", "args", "runs", "said"),
    [
        pytest.param({}, "--spec-type draft-simple -md {model}", "draft-simple", None, id="drafts"),
        pytest.param({}, "--spec-default", "ngram-mod", None, id="default"),
        pytest.param({}, "--spec-type none", "none", None, id="none was asked for"),
        pytest.param({}, "--spec-type draft-eagle3", "none", "", id="no drafter, and not a word"),
        pytest.param(
            {"foreign_drafter": True},
            "--spec-type draft-simple -md {model}",
            "none",
            "draft model vocab type must match",
            id="another vocabulary",
        ),
        pytest.param(
            {"foreign_drafter": True},
            "--spec-type ngram-mod,draft-simple -md {model}",
            "ngram-mod,draft-simple",
            None,
            id="a chain goes on with what is left",
        ),
        pytest.param({"help": "old"}, "-md {model}", "draft-simple", None, id="an old build needs no type"),
        pytest.param(
            {"tells_drafting": False}, "--spec-type ngram-mod", "ngram-mod", None, id="slots do not say"
        ),
    ],
)
async def test_what_runs_is_what_slots_can_do(
    rig: FleetRig,
    fake_engine: MakeFake,
    tiny_gguf: Path,
    script: dict[str, Any],
    args: str,
    runs: str,
    said: str | None,
) -> None:
    arguments = tuple(args.format(model=tiny_gguf).split())
    policy = SpecPolicy("off")
    rig.declare(request_for(fake_engine(**script), tiny_gguf, spec=policy, extra_args=arguments))
    result = await ready(rig)
    assert result.speculation == runs
    reason = result.speculation_reason
    assert (reason is None) == (said is None)
    if reason is not None and said is not None:
        assert reason.code == "speculation_inactive"
        assert said in reason.evidence["said"]
        assert said in reason.message


async def test_types_that_are_withheld_are_not_called_inactive(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    """05 §6.1 D1: they are taken off the line, so that nothing is missing where nothing drafts."""
    arguments = ("--spec-type", "draft-simple", "-md", str(tiny_gguf))
    rig.declare(request_for(fake_engine(), tiny_gguf, extra_args=arguments))
    for _ in range(2):
        pid = await serving_pid(rig)
        os.kill(pid, signal.SIGSEGV)
        while await serving_pid(rig) == pid:
            await asyncio.sleep(0.02)
    view = rig.instance("m")
    assert view.plan is not None
    assert view.plan.spec.reason is not None
    assert view.plan.spec.reason.code == "runtime_error"
    assert view.running is not None
    assert (view.running.speculation, view.running.speculation_reason) == ("none", None)


async def serving_pid(rig: FleetRig) -> int:
    """The process of the model, once it is ready."""
    view = await rig.until("m", State.READY)
    assert view.pid is not None
    return view.pid


async def test_sound_and_pictures_are_what_the_engine_takes(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(hears=True), tiny_gguf))
    result = await ready(rig)
    assert (result.vision, result.audio) == (False, True)


@pytest.mark.engine
async def test_the_real_engine_serves_without_a_drafter_of_another_vocabulary(
    rig: FleetRig, engine_binary: Path, smollm2: Path, tmp_path: Path
) -> None:
    drafter = write_working_model(tmp_path / "noise.gguf")
    arguments = ("--spec-type", "draft-simple", "-md", str(drafter))
    rig.declare(request_for(engine_binary, smollm2, extra_args=arguments, slots=1))
    result = await ready(rig)
    assert (result.speculation, result.offload) == ("none", None)
    assert result.speculation_reason is not None
    assert result.speculation_reason.code == "speculation_inactive"
    assert "vocab_type_dft = 1" in result.speculation_reason.message
    assert "vocabulary" in result.speculation_reason.remedy


@pytest.mark.engine
async def test_the_real_engine_drafts_with_a_model_of_the_same_vocabulary(
    rig: FleetRig, engine_binary: Path, smollm2: Path
) -> None:
    arguments = ("--spec-type", "draft-simple", "-md", str(smollm2))
    rig.declare(request_for(engine_binary, smollm2, extra_args=arguments, slots=1))
    result = await ready(rig)
    assert (result.speculation, result.speculation_reason) == ("draft-simple", None)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("fields", "offload"),
    [
        pytest.param({}, True, id="on the device"),
        pytest.param({"pool": PoolLimits(devices=("cpu",))}, None, id="meant for the host"),
        pytest.param({"memory_mode": "manual", "gpu_layers": 1}, True, id="a part of it"),
    ],
)
async def test_the_real_engine_says_whether_a_model_lies_on_a_device(
    soft_device: None, rig: FleetRig, tmp_path: Path, fields: dict[str, Any], offload: bool | None
) -> None:
    model = write_working_model(tmp_path / "noise.gguf")
    quick = {"slots": 1, "spec": SpecPolicy("off"), "extra_args": ("--no-warmup",)}
    request = request_for(Path(), model, **quick, **fields)
    rig.declare(replace(request, engine=EngineRef()))
    result = await ready(rig, SHADERS_S)
    assert result.offload is offload
    assert "cpu_fallback" not in [one.code for one in result.degradations]


@pytest.fixture
def soft_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Vulkan device in software, listed only where it is asked for; the rig reads it when it starts."""
    monkeypatch.setenv("GGML_VK_VISIBLE_DEVICES", "0")


async def ready(rig: FleetRig, wait_s: float = WAIT_S) -> LaunchResult:
    view = await rig.until("m", State.READY, wait_s=wait_s)
    assert view.result is not None
    return view.result
