"""Whatever the ladder changes, builds of every time accept the line that comes of it (06 §13, 14 §2)."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.engines.command_line import Directions, LineInputs, build_sections, fill_line
from framework.runtime.rungs import Trial, next_trial
from framework.values.engine import Capabilities
from framework.values.plan import LaunchPlan, Placement, SpecDecision
from tests.engines.eras import caps_of
from tests.engines.requests import a_request
from tests.fake_engine.command_line import parse
from tests.fake_engine.eras import Name
from tests.support.launch_plans import a_plan
from tests.support.start_ends import (
    ENGINE,
    ENTRY,
    FITS_ON_GPU,
    NO_DRAFTER,
    NO_HEAD,
    NO_PROJECTOR,
    SIGABRT,
    SIGSEGV,
    UNKNOWN,
    V_NEEDS_FLASH,
    after,
    codes,
    end_of,
    line,
)

MODEL, PROJECTOR, DRAFTER = Path("/m/demo.gguf"), Path("/m/mmproj.gguf"), "/m/drafter.gguf"
NAMES: tuple[Name, ...] = get_args(Name)
GPU = Directions(devices=("CUDA0",), layers=33)


def block_of(caps: Capabilities) -> tuple[str, ...]:
    """All that a build can be told about drafting."""
    kind = caps.mtp_token or next(iter(caps.spec_types[1:]), None)
    pairs = (("--spec-type", kind), (caps.depth_flag, "2"), (caps.drafter_flag, DRAFTER))
    return tuple(token for flag, value in pairs if flag and value for token in (flag, value))


def plan_on(era: Name, *user: str, directions: Directions | None = GPU, **asked: Any) -> LaunchPlan:
    """A launch with everything in it that the ladder may take out again."""
    caps = caps_of(era)
    request = a_request(extra_args=user, **asked)
    block = block_of(caps)
    inputs = LineInputs(
        request,
        caps,
        ENTRY,
        MODEL,
        slots=1,
        cache_types=("q8_0", "q8_0"),
        spec_block=block,
        projector=PROJECTOR,
        directions=directions,
    )
    plan = a_plan(
        ENGINE,
        model=MODEL,
        caps=caps,
        request=request,
        projector=PROJECTOR,
        spec=SpecDecision("mtp", "draft-mtp", block),
        fit=replace(FITS_ON_GPU, context=2048),
        placement=Placement(("CUDA0",), is_delegated=directions is None),
    )
    return replace(plan, sections=build_sections(inputs))


def accepts(era: Name, plan: LaunchPlan) -> bool:
    """Whether the parser of a build takes the line."""
    try:
        parse(fill_line(plan.sections, port=8080)[1:], era)
    except SystemExit:
        return False
    return True


@pytest.mark.parametrize("user", [(), ("-fa",), ("-fa", "--no-warmup")])
def test_a_switch_of_flash_attention_is_taken_away(user: tuple[str, ...]) -> None:
    plan = plan_on("plain", *user)
    assert "--flash-attn" in plan.argv
    trial = after(plan, SIGSEGV)
    assert codes(trial) == ["flash_attn_off", "v_cache_f16"]
    assert {"--flash-attn", "-fa", "off"}.isdisjoint(trial.plan.argv)
    assert accepts("plain", trial.plan)


def test_without_the_switch_the_variable_would_decide_and_goes_too() -> None:
    plan = replace(plan_on("plain"), env={"LLAMA_ARG_FLASH_ATTN": "1", "OTHER": "1"})
    assert after(plan, SIGSEGV).plan.env == {"OTHER": "1"}


@pytest.mark.parametrize("era", [name for name in NAMES if name != "plain"])
def test_other_builds_are_told_a_word(era: Name) -> None:
    plan = replace(plan_on(era), fit=replace(FITS_ON_GPU, gpu_layers=1))
    place = replace(plan.placement, gpu_layers=1)
    trial = after(replace(plan, placement=place), SIGSEGV)
    assert "--flash-attn off" in line(trial)
    assert accepts(era, trial.plan)


USER_ARGS = st.sampled_from(
    [
        ("-fa",),
        ("-fa", "on"),
        ("--flash-attn", "auto"),
        ("-ctv", "q8_0"),
        ("-ctvd", "q4_0"),
        ("--cache-type-v-draft", "q4_0"),
        ("--spec-draft-type-v", "q4_0"),
        ("--spec-type", "draft-mtp"),
        ("--spec-default",),
        ("-md", DRAFTER),
        ("-hfd", "someone/drafter"),
        ("-mm", str(PROJECTOR)),
        ("--mmproj-url", "https://example.org/p.gguf"),
        ("--fit", "on"),
        ("--no-warmup",),
    ]
)
REFUSED = [(f"error: invalid argument: {flag}",) for flag in ("--metrics", "--spec-type", "--log-verbosity")]
SAID = [(), NO_HEAD, NO_DRAFTER, NO_PROJECTOR, UNKNOWN, V_NEEDS_FLASH, *REFUSED]
ENDS = st.lists(
    st.tuples(st.sampled_from([1, SIGABRT, SIGSEGV]), st.sampled_from(SAID), st.booleans()),
    min_size=1,
    max_size=8,
)


@given(
    st.sampled_from(NAMES),
    st.lists(USER_ARGS, max_size=3),
    st.sampled_from([None, GPU, replace(GPU, tensor=True)]),
    st.sampled_from(["on", "off", "auto"]),
    ENDS,
)
def test_every_build_accepts_what_the_rungs_make_of_its_line(
    era: Name,
    user: list[tuple[str, ...]],
    directions: Directions | None,
    flash: str,
    ends: list[tuple[int, tuple[str, ...], bool]],
) -> None:
    own = [tokens for tokens in user if accepts(era, plan_on(era, *tokens))]
    plan = plan_on(era, *chain.from_iterable(own), directions=directions, flash_attn=flash)
    assert accepts(era, plan)
    trial: Trial | None = Trial(plan)
    for code, said, is_healthy in ends:
        if trial is None:
            break
        trial = next_trial(trial, end_of(trial.plan, code, *said, was_healthy=is_healthy))
        assert trial is None or accepts(era, trial.plan), trial.plan.argv
