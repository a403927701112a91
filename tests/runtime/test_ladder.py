"""Climbs of fake engines that break on one thing of their line, as builds do that cannot do it (06 §12)."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.runtime.ladder import Climb, Tries
from framework.runtime.launch import Running
from framework.values.plan import LaunchPlan, Placement, Section, SpecDecision
from tests.conftest import MakeFake
from tests.engines.requests import real_caps
from tests.support.climbs import Climbs, Coveted, engine_at, launch_of
from tests.support.fakes import FakeEngine
from tests.support.launch_plans import a_plan
from tests.support.start_ends import CANNOT_DIVIDE, FITS_ON_GPU, NO_PROJECTOR, UNKNOWN

HEAD = ("--spec-type", "draft-mtp", "--spec-draft-n-max", "2")
DIVIDED = ("--split-mode", "tensor", "--fit", "off")
DIES = {"exit_signal": "SIGSEGV"}


@pytest.fixture
async def climbs(tmp_path: Path) -> AsyncIterator[Climbs]:
    """A place for launches."""
    climbs = Climbs(tmp_path / "site")
    yield climbs
    await climbs.close()


def plan_for(
    engine: FakeEngine,
    model: Path,
    *,
    placed: tuple[str, ...] = ("--fit", "on"),
    spec: tuple[str, ...] = (),
    flash: str = "on",
    projector: bool = False,
    **fields: Any,
) -> LaunchPlan:
    binary = engine_at(engine.path)
    sections = [
        Section("slots", ("--parallel", "1", "--ctx-size", "1024")),
        Section("flash", ("--flash-attn", flash)),
        Section("placement", placed),
        Section("spec", spec, "optional"),
        Section("projector", ("--mmproj", str(model)) if projector else ()),
    ]
    decision = SpecDecision("mtp", "draft-mtp", spec) if spec else SpecDecision("off", "none")
    values = {"caps": real_caps(), "spec": decision, "fit": FITS_ON_GPU, **launch_of(binary, model), **fields}
    return a_plan(binary, *(section for section in sections if section.tokens), model=model, **values)


def degradations(climb: Climb) -> list[str]:
    return [reason.code for reason in climb.result.degradations]


def failure(climb: Climb) -> str:
    assert climb.result.failure is not None
    return climb.result.failure.reason.code


async def test_a_fit_step_that_breaks_is_left_out(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(faults=[{"on": ["--fit on"], "exit_signal": "SIGABRT"}])
    climb = await climbs.climb(plan_for(engine, tiny_gguf))
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "B"]
    assert degradations(climb) == ["fit_off_retry"]
    assert climbs.attempts[0].exit_code == -6
    assert "-nofit-port-" in climbs.attempts[1].log.name


async def test_a_plan_that_does_not_fit_is_left_to_the_fit_step(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(
        faults=[{"on": ["--gpu-layers 31"], "exit_code": 1}], devices=["CUDA0: x (1 MiB, 1 MiB free)"]
    )
    plan = plan_for(
        engine,
        tiny_gguf,
        placed=("--device", "CUDA0", "--gpu-layers", "31", "--fit", "off"),
        placement=Placement(("CUDA0",), is_delegated=False),
    )
    climb = await climbs.climb(plan)
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "A"]
    assert "--device CUDA0 --fit on" in climbs.line()
    assert degradations(climb)[0] == "fit_on_retry"


async def test_changes_add_up_until_it_runs(climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path) -> None:
    faults = [
        {"on": ["--fit on"], "exit_signal": "SIGABRT"},
        {"on": ["--flash-attn on"], **DIES},
        {"on": ["draft-mtp"], **DIES},
        {"on": ["--mmproj"], **DIES},
    ]
    climb = await climbs.climb(plan_for(fake_engine(faults=faults), tiny_gguf, spec=HEAD, projector=True))
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "B", "R2", "R4", "R4", "R2", "R5"]
    assert degradations(climb) == ["fit_off_retry", "runtime_error", "flash_attn_off", "projector_suspected"]
    assert climb.result.speculation == "none"
    assert climb.result.speculation_reason is not None
    assert not climb.result.vision
    assert [attempt.n for attempt in climbs.attempts] == [1, 2, 3, 4, 5, 6, 7]


async def test_the_log_shows_where_a_try_begins_and_what_was_changed(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(faults=[{"on": ["--fit on"], "exit_signal": "SIGABRT"}])
    await climbs.climb(plan_for(engine, tiny_gguf))
    marks = [line.text for line in climbs.site.log.last(999) if line.text.startswith("--- ")]
    assert marks == ["--- try 2 of this start, without the engine's own fit step ---"]


async def test_what_cannot_be_cured_ends_with_all_its_attempts_told(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(faults=[DIES])
    climb = await climbs.climb(plan_for(engine, tiny_gguf, spec=HEAD, projector=True))
    assert climbs.rungs == ["S", "B", "R2", "R4", "R4", "R2", "R5"]
    assert failure(climb) == "gpu_driver"
    assert list(climb.result.attempts) == climbs.attempts
    assert climb.result.degradations == ()  # nothing runs without anything
    assert climbs.alive == []


async def test_an_illegal_instruction_is_tried_once(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(faults=[{"exit_signal": "SIGILL"}])
    climb = await climbs.climb(plan_for(engine, tiny_gguf, spec=HEAD, projector=True))
    assert failure(climb) == "cpu_unsupported"
    assert len(climbs.attempts) == 1


async def test_an_outdated_build_runs_without_the_head(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(faults=[{"on": ["draft-mtp"], "exit_code": 1, "stderr": UNKNOWN}])
    plan = plan_for(engine, tiny_gguf, spec=HEAD)
    climb = await climbs.climb(plan)
    assert climb.result.speculation_reason is not None
    assert climb.result.speculation_reason.code == "binary_outdated"
    assert climb.result.speculation == "default"
    assert plan.spec.requested == "mtp"


async def test_a_head_that_breaks_the_engine_costs_no_flash_attention(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(faults=[{"on": ["draft-mtp"], **DIES}])
    climb = await climbs.climb(plan_for(engine, tiny_gguf, spec=HEAD, placed=("--fit", "off")))
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "R2", "R4"]
    assert "--flash-attn on" in climbs.line()
    assert degradations(climb) == ["runtime_error"]
    assert climb.result.speculation == "default"


@pytest.mark.parametrize(
    ("spec", "rungs"),
    [
        pytest.param(HEAD, ["S", "R4", "R4"], id="in place of a head"),
        pytest.param(("--spec-default",), ["S", "R4"], id="planned"),
    ],
)
async def test_n_grams_that_break_the_engine_are_left_out(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path, spec: tuple[str, ...], rungs: list[str]
) -> None:
    faults = [{"on": ["draft-mtp"], "exit_code": 1}, {"on": ["--spec-default"], "exit_code": 1}]
    climb = await climbs.climb(plan_for(fake_engine(faults=faults), tiny_gguf, spec=spec))
    assert climb.result.outcome == "ready"
    assert climbs.rungs == rungs
    assert climb.result.speculation == "none"
    assert degradations(climb) == ["runtime_error"]
    assert climb.result.speculation_reason is not None
    assert "Nothing drafts now" in climb.result.speculation_reason.message


async def test_a_head_that_is_not_there_is_left_out(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    climb = await climbs.climb(plan_for(fake_engine(has_head=False), tiny_gguf, spec=HEAD))
    assert climbs.rungs == ["S", "R4"]
    assert climb.result.speculation == "default"
    assert climb.result.speculation_reason is not None
    assert "doesn't contain MTP layers" in climb.result.speculation_reason.message


async def test_arguments_of_the_user_that_break_drafting_are_taken_out(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    plan = plan_for(engine, tiny_gguf)
    own = Section("user", ("--spec-type", "draft-simple", "--no-warmup"), "user")
    plan = replace(plan, sections=(*plan.sections, own), spec=SpecDecision(None, "user"))
    climb = await climbs.climb(plan)
    assert climb.result.outcome == "ready"
    assert climbs.rungs[-1] == "R4"
    assert climbs.line().endswith("--no-warmup")
    assert climb.result.speculation == "none"


async def test_a_projector_that_does_not_load_leaves_text(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(faults=[{"on": ["--mmproj"], "exit_code": 1, "stderr": NO_PROJECTOR}], hears=True)
    climb = await climbs.climb(plan_for(engine, tiny_gguf, projector=True))
    assert climbs.rungs == ["S", "R5"]
    assert degradations(climb) == ["projector_dropped"]
    assert (climb.result.vision, climb.result.audio) == (False, False)


async def test_a_refused_type_of_speculation_is_dropped(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    climb = await climbs.climb(plan_for(fake_engine(help="renamed"), tiny_gguf, spec=HEAD))
    assert climbs.rungs == ["S", "U"]
    assert climb.result.speculation == "none"
    assert climb.result.speculation_reason is not None
    assert climb.result.speculation_reason.code == "flag_rejected"


# Dividing tensors


async def test_a_tensor_abort_asks_for_another_plan(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(
        faults=[{"on": ["--split-mode tensor"], "exit_signal": "SIGABRT", "stderr": CANNOT_DIVIDE}]
    )
    climb = await climbs.climb(plan_for(engine, tiny_gguf, placed=DIVIDED))
    assert climb.result.outcome == "replan"
    assert climb.running is None
    assert failure(climb) == "tensor_abort"
    assert climbs.rungs == ["S"]


async def test_the_second_plan_of_a_launch_goes_on_counting(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    tries = Tries()
    engine = fake_engine(
        faults=[{"on": ["--split-mode tensor"], "exit_signal": "SIGABRT", "stderr": CANNOT_DIVIDE}]
    )
    await climbs.climb(plan_for(engine, tiny_gguf, placed=DIVIDED), tries=tries)
    climb = await climbs.climb(plan_for(engine, tiny_gguf), tries=tries, rung="R1")
    assert [(attempt.n, attempt.rung) for attempt in climb.result.attempts] == [(1, "S"), (2, "R1")]


async def test_a_head_over_divided_tensors_has_to_show_that_it_can_generate(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    climb = await climbs.climb(plan_for(engine, tiny_gguf, placed=DIVIDED, spec=HEAD))
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S"]
    assert [request["path"] for request in engine.requests()] == ["/completion"]


async def test_an_engine_that_dies_at_the_first_tokens_tries_without_flash_attention(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(faults=[{"on": ["draft-mtp", "--flash-attn on"], "at_request": 1, **DIES}])
    climb = await climbs.climb(plan_for(engine, tiny_gguf, placed=DIVIDED, spec=HEAD))
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "R3"]
    assert climb.result.speculation == "draft-mtp"
    assert degradations(climb) == ["flash_attn_off"]
    assert climbs.attempts[0].outcome == "exited"
    assert climbs.attempts[0].exit_code == -11


async def test_where_that_does_not_help_drafting_goes_and_flash_attention_stays(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(
        faults=[
            {"on": ["draft-mtp", "--flash-attn on"], "at_request": 1, **DIES},
            {"on": ["--split-mode tensor", "--flash-attn off"], **DIES},
        ]
    )
    climb = await climbs.climb(plan_for(engine, tiny_gguf, placed=DIVIDED, spec=HEAD))
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "R3", "R4"]
    assert "--flash-attn on" in climbs.line()
    assert degradations(climb) == ["runtime_error"]


async def test_an_engine_that_answers_with_an_error_loses_its_head_and_no_more(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(fail_status=500)
    climb = await climbs.climb(plan_for(engine, tiny_gguf, placed=DIVIDED, spec=HEAD))
    assert climb.result.outcome == "ready"
    assert climbs.rungs == ["S", "R4"]
    assert climbs.attempts[0].outcome == "decode_failed"
    assert climb.result.speculation_reason is not None
    assert "could not generate" in climb.result.speculation_reason.message


# Limits


async def test_a_hang_is_given_up_at_its_time_and_nothing_is_tried(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(load_s=-1)
    climb = await climbs.climb(plan_for(engine, tiny_gguf, spec=HEAD, projector=True), timeout_s=2.0)
    assert failure(climb) == "health_timeout"
    assert climbs.rungs == ["S"]
    assert climbs.alive == []


async def test_a_launch_has_three_times_its_load_time_over_all_plans(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    tries = Tries(spent_s=180.0)
    climb = await climbs.climb(plan_for(fake_engine(faults=[DIES]), tiny_gguf), tries=tries)
    assert failure(climb) in ("start_failed", "health_timeout")
    assert climbs.rungs == ["S"]
    assert tries.spent_s > 180.0


async def test_a_try_with_little_time_left_does_not_hide_why_it_was_made(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(load_s=-1, faults=[{"on": ["--mmproj"], "exit_code": 1, "stderr": NO_PROJECTOR}])
    tries = Tries(spent_s=170.0)
    climb = await climbs.climb(plan_for(engine, tiny_gguf, projector=True), tries=tries)
    assert [attempt.outcome for attempt in climbs.attempts] == ["exited", "timeout"]
    assert failure(climb) == "start_failed"
    assert climb.result.failure is not None
    assert "Failed to load CLIP model" in climb.result.failure.detail
    again = await climbs.climb(plan_for(engine, tiny_gguf), tries=tries, rung="R1")
    assert failure(again) == "start_failed"
    assert len(climbs.attempts) == 2


async def test_the_first_tokens_have_no_more_time_than_the_launch(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(first_token_s=600.0)
    tries = Tries(spent_s=170.0)
    climb = await climbs.climb(plan_for(engine, tiny_gguf, placed=DIVIDED, spec=HEAD), tries=tries)
    assert climbs.rungs == ["S"]
    assert failure(climb) == "health_timeout"
    assert climb.result.failure is not None
    assert "had not generated its first tokens" in climb.result.failure.reason.message
    assert climbs.alive == []


async def test_a_climb_that_is_cancelled_leaves_nothing_and_tries_nothing_more(
    climbs: Climbs, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    started: asyncio.Future[Running] = asyncio.get_running_loop().create_future()
    climbs.after_spawn = started.set_result
    climbing = asyncio.create_task(climbs.climb(plan_for(fake_engine(load_s=-1), tiny_gguf, spec=HEAD)))
    await started
    climbing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await climbing
    assert [attempt.outcome for attempt in climbs.attempts] == ["cancelled"]
    assert climbs.alive == []


@pytest.mark.parametrize(
    ("times", "rungs"),
    [pytest.param(4, ["S", "P", "P", "P"], id="for ever"), pytest.param(1, ["S", "P"], id="once")],
)
async def test_another_port_is_taken_than_the_one_of_a_stranger(
    fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path, times: int, rungs: list[str]
) -> None:
    """PL-06."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        climbs = Climbs(tmp_path / "site", Coveted(stranger.getsockname()[1], times))
        climb = await climbs.climb(plan_for(fake_engine(), tiny_gguf))
        await climbs.close()
    assert climbs.rungs == rungs
    if times == 1:
        assert climb.result.outcome == "ready"
    else:
        assert failure(climb) == "port_conflict"
        assert climb.result.failure is not None
        assert f"is held by process {os.getpid()} (" in climb.result.failure.reason.message
