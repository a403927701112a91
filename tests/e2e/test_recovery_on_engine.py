"""Real engines that are made to fail at their start, and what the ladder makes of it (06 §12, 15 §3, §7)."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.runtime.decode_probe import can_decode
from framework.runtime.ladder import Climb
from framework.runtime.launch import Running
from framework.values.engine import EngineBinary
from framework.values.plan import LaunchPlan, Placement, Section, SpecDecision
from tests.engines.requests import real_caps
from tests.support.climbs import Climbs, Coveted, engine_at, launch_of
from tests.support.launch_plans import a_plan
from tests.support.model_files import write_tiny_gguf
from tests.support.waiting import eventually

pytestmark = pytest.mark.engine

NO_GPU, ONE_GPU = {"GGML_VK_VISIBLE_DEVICES": ""}, {"GGML_VK_VISIBLE_DEVICES": "0"}
TWO_GPUS = {"GGML_VK_VISIBLE_DEVICES": "0,0"}
HEAD = ("--spec-type", "draft-mtp", "--spec-draft-n-max", "2")
# More than one buffer of the software device can hold.
TOO_LONG = "400000"


@pytest.fixture
async def climbs(tmp_path: Path) -> AsyncIterator[Climbs]:
    """A place for launches."""
    climbs = Climbs(tmp_path / "site")
    yield climbs
    await climbs.close()


@pytest.fixture(scope="module")
def engine(engine_binary: Path) -> EngineBinary:
    return engine_at(engine_binary)


def plan_for(
    engine: EngineBinary,
    model: Path,
    *lines: tuple[str, ...],
    flash: str = "auto",
    placed: str = "off",
    context: str = "512",
    user: tuple[str, ...] = (),
    variables: dict[str, str] = NO_GPU,
    **fields: Any,
) -> LaunchPlan:
    """The model with little context; `lines` are sections, each with its name in front."""
    sections = [
        Section("slots", ("--parallel", "1", "--ctx-size", context, "-lv", "4")),
        Section("flash", ("--flash-attn", flash)),
        Section("placement", ("--fit", placed)),
        *(Section(name, tokens, "optional") for name, *tokens in lines),
        Section("user", user, "user"),
    ]
    placed = Placement(is_delegated=False)
    values = {"caps": real_caps(), "placement": placed, **launch_of(engine, model, **variables), **fields}
    plan = a_plan(engine, *(section for section in sections if section.tokens), model=model, **values)
    return replace(plan, request=replace(plan.request, extra_args=user))


def told(climb: Climb) -> list[str]:
    return [reason.code for reason in climb.result.degradations]


def failure(climb: Climb) -> str:
    assert climb.result.failure is not None
    return climb.result.failure.reason.code


def why_not_drafting(climb: Climb) -> str:
    assert climb.result.speculation_reason is not None
    assert climb.result.speculation_reason.code == "runtime_error"
    return climb.result.speculation_reason.message


async def test_an_architecture_that_it_does_not_know_is_named_after_one_attempt(
    climbs: Climbs, engine: EngineBinary, tmp_path: Path
) -> None:
    model = write_tiny_gguf(tmp_path / "womba.gguf", architecture="womba")
    climb = await climbs.climb(plan_for(engine, model))
    assert failure(climb) == "unsupported_architecture"
    assert climb.result.failure is not None
    assert "'womba'" in climb.result.failure.reason.message
    assert climbs.rungs == ["S"]


async def test_a_projector_that_is_none_leaves_text(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    climb = await climbs.climb(plan_for(engine, smollm2, ("projector", "--mmproj", str(smollm2))))
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "R5"]
    assert told(climb)[0] == "projector_dropped"
    assert "Failed to load CLIP model" in climb.result.degradations[0].message
    assert not climb.result.vision


async def test_a_head_that_is_not_in_the_file_is_given_up_for_the_default(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    spec = SpecDecision("mtp", "draft-mtp", HEAD)
    climb = await climbs.climb(plan_for(engine, smollm2, ("spec", *HEAD), spec=spec))
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "R4"]
    assert "doesn't contain MTP layers" in why_not_drafting(climb)
    assert climb.result.speculation == "default"


async def test_a_head_that_the_user_asked_for_is_taken_out_of_his_arguments(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    spec = SpecDecision(None, "user")
    plan = plan_for(engine, smollm2, user=("--spec-type", "draft-mtp", "--temp", "0"), spec=spec)
    climb = await climbs.climb(plan)
    assert climb.result.outcome == "ready"
    assert climbs.line().endswith("--temp 0")
    assert climb.result.speculation == "none"
    assert why_not_drafting(climb)


async def test_a_drafter_that_is_not_there_is_given_up(
    climbs: Climbs, engine: EngineBinary, smollm2: Path, tmp_path: Path
) -> None:
    block = ("--model-draft", str(tmp_path / "gone.gguf"), "--spec-type", "draft-simple")
    spec = SpecDecision("draft", "draft-simple", block)
    climb = await climbs.climb(plan_for(engine, smollm2, ("spec", *block), spec=spec))
    assert climbs.rungs == ["S", "R4"]
    assert "failed to load draft model" in why_not_drafting(climb)


async def test_a_type_without_its_drafter_breaks_the_engine_silently_and_is_given_up(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    spec = SpecDecision(None, "user")
    plan = plan_for(engine, smollm2, user=("--spec-type", "draft-simple"), spec=spec, flash="off")
    climb = await climbs.climb(plan)
    assert climb.result.outcome == "ready"
    assert climbs.attempts[0].exit_code == -signal.SIGSEGV
    assert climbs.rungs == ["S", "R4"]
    assert why_not_drafting(climb)


async def test_a_quantised_v_cache_without_flash_attention_becomes_f16(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    types = ("kv", "--cache-type-k", "q8_0", "--cache-type-v", "q8_0")
    climb = await climbs.climb(plan_for(engine, smollm2, types, flash="off"))
    assert climb.result.outcome == "ready"
    assert climbs.attempts[0].exit_code == -signal.SIGSEGV
    assert climbs.rungs == ["S", "R2"]
    assert told(climb)[0] == "v_cache_f16"
    assert "--cache-type-k q8_0 --cache-type-v f16" in climbs.line()


async def test_where_the_engine_says_what_it_needs_its_fit_step_is_not_blamed(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    types = ("kv", "--cache-type-v", "q8_0")
    plan = plan_for(engine, smollm2, types, flash="off", placed="on", placement=Placement())
    climb = await climbs.climb(plan)
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "R2"]
    assert "requires flash_attn" in climb.result.degradations[0].message


async def test_an_adapter_that_is_not_there_is_quoted_after_one_attempt(
    climbs: Climbs, engine: EngineBinary, smollm2: Path, tmp_path: Path
) -> None:
    user = ("--lora", str(tmp_path / "gone.gguf"))
    projector = ("projector", "--mmproj", str(smollm2))
    climb = await climbs.climb(plan_for(engine, smollm2, projector, flash="on", user=user))
    assert climbs.attempts[0].exit_code == -signal.SIGSEGV
    assert failure(climb) == "start_failed"
    assert climb.result.failure is not None
    assert "gone.gguf" in climb.result.failure.reason.message
    assert climbs.rungs == ["S"]


async def test_a_buffer_too_large_for_the_device_is_lack_of_memory_at_once(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    plan = plan_for(engine, smollm2, context=TOO_LONG, user=("-ngl", "99"), variables=ONE_GPU)
    climb = await climbs.climb(plan)
    assert climbs.attempts[0].exit_code == -signal.SIGABRT
    assert failure(climb) == "out_of_memory"
    assert climb.result.failure is not None
    assert climb.result.failure.retryable
    assert climbs.rungs == ["S"]


async def test_divided_tensors_without_flash_attention_break_and_nothing_is_tried(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    plan = plan_for(engine, smollm2, flash="off", user=("--split-mode", "tensor"), variables=TWO_GPUS)
    climb = await climbs.climb(plan)
    assert climbs.attempts[0].exit_code == -signal.SIGSEGV
    assert failure(climb) == "start_failed"
    assert climbs.rungs == ["S"]


async def test_the_first_tokens_tell_whether_an_engine_can_generate(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    running = (await climbs.climb(plan_for(engine, smollm2))).running
    assert running is not None
    assert await can_decode(climbs.client, running, left_s=60.0)
    os.kill(running.child.pid, signal.SIGKILL)
    assert not await can_decode(climbs.client, running, left_s=60.0)


async def test_a_flag_of_ours_with_a_value_that_it_refuses_is_dropped(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    spec = SpecDecision("mtp", "draft-mtp", ("--spec-type", "mtp"))
    climb = await climbs.climb(plan_for(engine, smollm2, ("spec", "--spec-type", "mtp"), spec=spec))
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "U"]
    assert climb.result.speculation == "none"


async def test_a_variable_that_it_refuses_is_named(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    plan = plan_for(engine, smollm2, variables={**NO_GPU, "LLAMA_ARG_DRAFT_MAX": "8"})
    climb = await climbs.climb(plan)
    assert failure(climb) == "user_flag_rejected"
    assert climb.result.failure is not None
    assert "LLAMA_ARG_DRAFT_MAX" in climb.result.failure.reason.message


async def test_an_engine_that_hangs_while_it_loads_is_ended_in_time(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    climbs.after_spawn = lambda running: os.kill(running.child.pid, signal.SIGSTOP)
    climb = await climbs.climb(plan_for(engine, smollm2), timeout_s=2.0)
    assert failure(climb) == "health_timeout"
    assert climbs.rungs == ["S"]
    assert climbs.alive == []


async def test_an_engine_that_somebody_ends_is_not_started_again(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    climbs.after_spawn = lambda running: os.kill(running.child.pid, signal.SIGTERM)
    climb = await climbs.climb(plan_for(engine, smollm2, ("spec", *HEAD)))
    assert failure(climb) == "terminated"
    assert climbs.rungs == ["S"]


async def test_an_illegal_instruction_while_it_loads_is_tried_once(
    climbs: Climbs, engine: EngineBinary, smollm2: Path
) -> None:
    killing: list[asyncio.Task[None]] = []

    async def kill(running: Running) -> None:
        loads = "llama_model_loader: loaded meta data"
        await eventually(lambda: any(loads in line.text for line in climbs.site.log.last(99)), what="a load")
        os.kill(running.child.pid, signal.SIGILL)

    climbs.after_spawn = lambda running: killing.append(asyncio.create_task(kill(running)))
    climb = await climbs.climb(plan_for(engine, smollm2, ("spec", *HEAD)))
    await asyncio.gather(*killing)
    assert failure(climb) == "cpu_unsupported"
    assert climbs.attempts[0].exit_code == -signal.SIGILL
    assert climbs.rungs == ["S"]


async def test_a_drafter_that_a_variable_names_is_left_out_too(
    climbs: Climbs, engine: EngineBinary, smollm2: Path, tmp_path: Path
) -> None:
    named = {**NO_GPU, "LLAMA_ARG_SPEC_DRAFT_MODEL": str(tmp_path / "gone.gguf")}
    drafts = ("spec", "--spec-type", "draft-simple")
    climb = await climbs.climb(plan_for(engine, smollm2, drafts, variables=named))
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "R4"]


async def test_a_port_that_is_taken_is_changed(engine: EngineBinary, smollm2: Path, tmp_path: Path) -> None:
    """PL-06."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        climbs = Climbs(tmp_path / "site", Coveted(stranger.getsockname()[1], 1))
        climb = await climbs.climb(plan_for(engine, smollm2))
        await climbs.close()
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "P"]
