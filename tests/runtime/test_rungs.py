"""What is changed after a start that failed: triggers, order and limits of the rungs (06 §12, §16.9)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.runtime.attempts import LABELS, RUNGS
from framework.runtime.rungs import DECODE_RUNGS, LINE_RUNGS, START_RUNGS, Trial, next_trial
from framework.runtime.start_end import Outcome
from framework.values.plan import FitPlan, LaunchPlan, Placement
from framework.values.request import PoolLimits
from tests.support.start_ends import (
    CANNOT_DIVIDE,
    DIVIDED,
    FITS_ON_GPU,
    HEAD,
    NO_DRAFTER,
    NO_HEAD,
    NO_PROJECTOR,
    OF_THE_USER,
    PROJECTOR,
    SIGABRT,
    SIGILL,
    SIGKILL,
    SIGSEGV,
    SIGTERM,
    TOO_LARGE,
    TOO_LITTLE,
    UNKNOWN,
    V_NEEDS_FLASH,
    after,
    climbed,
    codes,
    end_of,
    line,
    the_plan,
)

Ends = tuple[tuple[int | None, tuple[str, ...]], ...]


@pytest.mark.parametrize(
    ("plan", "ends", "rungs"),
    [
        pytest.param(the_plan(), ((1, ()), (1, ())), ["A", "R6"], id="A after exit 1, once"),
        pytest.param(the_plan(), ((SIGSEGV, ()), (SIGSEGV, ())), ["A", "R2"], id="A, then flash attention"),
        pytest.param(the_plan(flash="off"), ((SIGSEGV, ()),) * 2, ["A", "R6"], id="A alone"),
        pytest.param(the_plan(**OF_THE_USER), ((1, ()),), ["R6"], id="the user placed it"),
        pytest.param(the_plan(), ((1, UNKNOWN),), ["R6"], id="no A for an unknown architecture"),
        pytest.param(the_plan(), ((1, TOO_LITTLE),), ["R6"], id="no A for lack of memory"),
        pytest.param(the_plan(), ((SIGABRT, TOO_LARGE),), ["R6"], id="no R2 for a buffer too large"),
        pytest.param(the_plan(PROJECTOR), ((1, NO_PROJECTOR),), ["R5"], id="no A for a projector"),
        pytest.param(the_plan(spec=HEAD), ((1, NO_HEAD),), ["R4"], id="no A for a missing head"),
        pytest.param(the_plan(spec=HEAD), ((1, UNKNOWN), (1, UNKNOWN)), ["R4", "R6"], id="outdated"),
        pytest.param(the_plan(spec=HEAD), ((1, TOO_LITTLE),), ["R4"], id="a head that did not fit"),
        pytest.param(
            the_plan(
                PROJECTOR,
                spec=HEAD,
                placed="--device CUDA0 --fit on",
                placement=Placement(),
                fit=FITS_ON_GPU,
            ),
            ((SIGSEGV, ()),) * 7,
            ["B", "R2", "R4", "R4", "R2", "R5", "R6"],
            id="B and everything behind it",
        ),
        pytest.param(the_plan(PROJECTOR, **OF_THE_USER), ((SIGSEGV, ()),) * 2, ["R2", "R5"], id="suspected"),
        pytest.param(
            the_plan(PROJECTOR, flash="off", **OF_THE_USER),
            ((SIGSEGV, TOO_LITTLE),),
            ["R6"],
            id="no R5 for lack of memory",
        ),
        pytest.param(the_plan(PROJECTOR, flash="off", **OF_THE_USER), ((1, ()),), ["R6"], id="no R5 for 1"),
        pytest.param(the_plan(spec=HEAD, flash="off"), ((SIGKILL, ()),), ["R4"], id="killed with a head"),
        pytest.param(the_plan(flash="off"), ((SIGKILL, ()),), ["R6"], id="killed without"),
        pytest.param(the_plan(PROJECTOR, spec=HEAD), ((SIGILL, ()),), ["R6"], id="no CPU for it"),
        pytest.param(the_plan(PROJECTOR, spec=HEAD), ((SIGTERM, ()),), ["R6"], id="ended from outside"),
        pytest.param(the_plan(flash="off", **OF_THE_USER), ((139, ()),), ["R6"], id="139 of a bare program"),
        pytest.param(the_plan(wrapper=True, **OF_THE_USER), ((139, ()),), ["R2"], id="139 behind a wrapper"),
        pytest.param(the_plan(**OF_THE_USER), ((139, ()),), ["R6"], id="139 is not hard by itself"),
        pytest.param(the_plan(spec=HEAD), ((127, ()),), ["R6"], id="a library is missing"),
    ],
)
def test_the_rungs_follow_each_other(plan: LaunchPlan, ends: Ends, rungs: list[str]) -> None:
    assert climbed(plan, *ends) == rungs


@pytest.mark.parametrize("outcome", ["timeout", "incomplete"])
def test_nothing_is_changed_where_nothing_helps(outcome: Outcome) -> None:
    plan = the_plan(PROJECTOR, spec=HEAD)
    assert next_trial(Trial(plan), end_of(plan, None, outcome=outcome)) is None


def test_a_port_is_changed_three_times() -> None:
    bound = ("E couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 1",)
    assert climbed(the_plan(spec=HEAD), *((1, bound),) * 4) == ["P", "P", "P", "R6"]


def test_the_fit_step_takes_over_on_the_same_devices() -> None:
    trial = after(the_plan(), 1)
    assert "--device CUDA0 --fit on" in line(trial)
    assert "--gpu-layers" not in line(trial)
    assert codes(trial) == ["fit_on_retry"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"placement": Placement(devices=("CUDA0",))}, id="delegated"),
        pytest.param({"placement": Placement(("CUDA0",), is_delegated=False, gpu_layers=20)}, id="some"),
        pytest.param({"placement": Placement(is_delegated=False)}, id="host memory"),
        pytest.param({"placed": DIVIDED}, id="tensors divided"),
    ],
)
def test_the_fit_step_takes_over_only_from_a_plan_that_put_all_on_gpus(change: dict[str, object]) -> None:
    plan = the_plan(flash="off", **change)  # type: ignore[arg-type]
    assert next_trial(Trial(plan), end_of(plan, 1)) is None


def test_a_pool_that_forbids_host_memory_is_not_left_to_the_fit_step() -> None:
    plan = the_plan(flash="off")
    strict = replace(plan, request=replace(plan.request, pool=PoolLimits(offload="forbid")))
    assert next_trial(Trial(strict), end_of(strict, 1)) is None


def test_without_the_fit_step_the_context_is_the_planned_one() -> None:
    fitted = "--device CUDA0 --fit on"
    fit = replace(FITS_ON_GPU, context=2048)
    plan = the_plan(placed=fitted, placement=Placement(("CUDA0",)), fit=fit, user="--jinja")
    trial = after(plan, SIGABRT)
    assert (trial.rung, codes(trial)) == ("B", ["fit_off_retry"])
    assert "--device CUDA0 --fit off" in line(trial)
    assert line(trial).endswith("-c 2048 --jinja")


@pytest.mark.parametrize(
    ("placed", "code", "user"),
    [
        pytest.param("--gpu-layers 3 --fit off", SIGABRT, "", id="off already"),
        pytest.param("--fit on", 1, "", id="no break"),
        pytest.param("--fit on", SIGABRT, "--fit on", id="of the user"),
    ],
)
def test_the_fit_step_is_left_out_only_where_it_may_be_the_cause(placed: str, code: int, user: str) -> None:
    plan = the_plan(placed=placed, flash="off", user=user, placement=Placement(("CUDA0",)), fit=FITS_ON_GPU)
    assert next_trial(Trial(plan), end_of(plan, code)) is None


@pytest.mark.parametrize(
    "fit",
    [
        pytest.param(replace(FITS_ON_GPU, gpu_layers=12), id="layers in host memory"),
        pytest.param(replace(FITS_ON_GPU, cpu_experts=3), id="experts in host memory"),
        pytest.param(replace(FITS_ON_GPU, fits=False), id="does not fit"),
        pytest.param(FitPlan(), id="not planned"),
    ],
)
def test_the_fit_step_stays_where_gpus_would_get_more_than_is_counted_for_them(fit: FitPlan) -> None:
    plan = the_plan(placed="--fit on", flash="off", placement=Placement(("CUDA0",)), fit=fit)
    assert next_trial(Trial(plan), end_of(plan, SIGABRT)) is None


def test_a_refused_section_of_ours_is_dropped_twice_at_most() -> None:
    plan = the_plan("more: --one", "yet: --two")
    optional = tuple(replace(s, kind="optional") if s.kind == "core" else s for s in plan.sections)
    plan = replace(plan, sections=optional)
    refused = [(1, (f"error: invalid argument: {flag}",)) for flag in ("--metrics", "--one", "--two")]
    assert climbed(plan, *refused) == ["U", "U", "R6"]


@pytest.mark.parametrize(
    "said",
    [
        "error: invalid argument: --spec-type",
        "error: unknown argument: --spec-type",
        'error while handling argument "--spec-type": unknown speculative type: draft-mtp',
        'error while handling argument "--spec-type": the argument has been removed. use --x',
    ],
)
def test_a_refused_speculation_leaves_the_line_and_the_plan(said: str) -> None:
    trial = after(the_plan(spec=HEAD), 1, said)
    assert (trial.rung, codes(trial)) == ("U", ["flag_rejected"])
    assert "--spec" not in line(trial)
    assert trial.plan.spec.resolved == "none"
    assert trial.drafting_dropped == trial.given_up[0]


def test_a_flag_that_the_user_gave_as_well_is_his() -> None:
    plan = the_plan(user="--metrics")
    assert next_trial(Trial(plan), end_of(plan, 1, "error: invalid argument: --metrics")) is None


def test_flash_attention_goes_with_the_types_that_need_it() -> None:
    env = {"LLAMA_ARG_CACHE_TYPE_V": "q8_0", "OTHER": "1"}
    plan = the_plan("kv: --cache-type-k q8_0 --cache-type-v q8_0", env=env, **OF_THE_USER)
    trial = after(plan, SIGSEGV)
    assert (trial.rung, codes(trial)) == ("R2", ["flash_attn_off", "v_cache_f16"])
    assert "--flash-attn off" in line(trial)
    assert "--cache-type-k q8_0 --cache-type-v f16" in line(trial)
    assert trial.plan.env == {"OTHER": "1"}


@pytest.mark.parametrize(
    ("code", "lines"),
    [pytest.param(SIGSEGV, (), id="silent"), pytest.param(1, V_NEEDS_FLASH, id="said by the drafter's")],
)
def test_types_that_need_flash_attention_go_where_it_is_off(code: int, lines: tuple[str, ...]) -> None:
    plan = the_plan("kv: --cache-type-v q8_0", flash="off", **OF_THE_USER)
    trial = after(plan, code, *lines)
    assert (trial.rung, codes(trial)) == ("R2", ["v_cache_f16"])
    assert "--cache-type-v f16" in line(trial)


def test_no_flash_attention_is_no_cure_where_tensors_are_divided() -> None:
    plan = the_plan(placed=DIVIDED)
    assert next_trial(Trial(plan), end_of(plan, SIGSEGV)) is None


@pytest.mark.parametrize(
    ("code", "lines", "told"),
    [
        pytest.param(1, NO_PROJECTOR, "projector_dropped", id="blamed"),
        pytest.param(1, ("E clip_init: projector type x is not supported",), "projector_dropped", id="words"),
        pytest.param(SIGABRT, (), "projector_suspected", id="suspected"),
    ],
)
def test_text_only_leaves_no_projector_anywhere(code: int, lines: tuple[str, ...], told: str) -> None:
    env = {"LLAMA_ARG_MMPROJ": "/models/other.gguf"}
    plan = the_plan(PROJECTOR, flash="off", env=env, placed="", user="-ngl 3 -mm /models/mine.gguf")
    trial = after(plan, code, *lines)
    assert (trial.rung, codes(trial)) == ("R5", [told])
    assert "mm" not in line(trial)
    assert trial.plan.env == {}
    assert trial.before_text_only is not None


# Whatever happens


def test_every_rung_has_words_and_a_label_of_its_log() -> None:
    names = [name for name, _, _ in (*LINE_RUNGS, *START_RUNGS, *DECODE_RUNGS)]
    assert {*names, "S", "R1"} == set(RUNGS)
    assert set(names) == set(LABELS)


LINES = st.lists(
    st.sampled_from(
        [*NO_HEAD, *NO_DRAFTER, *NO_PROJECTOR, *V_NEEDS_FLASH, *UNKNOWN, *TOO_LITTLE, *CANNOT_DIVIDE]
    )
    | st.text(max_size=30)
    | st.sampled_from(["error: invalid argument: --metrics", "error: invalid argument: --spec-type"]),
    max_size=4,
)
CODES = st.sampled_from([None, 0, 1, 3, SIGILL, SIGABRT, SIGKILL, SIGSEGV, SIGTERM, 127, 139])


@given(st.lists(st.tuples(CODES, LINES, st.booleans()), min_size=20, max_size=20), st.booleans())
def test_every_climb_ends_and_tells_what_it_gave_up(
    ends: list[tuple[int | None, list[str], bool]], divided: bool
) -> None:
    trial: Trial | None = Trial(the_plan(PROJECTOR, spec=HEAD, placed=DIVIDED if divided else "--fit on"))
    changes = 0
    for code, lines, healthy in ends:
        if trial is None:
            break
        trial = next_trial(trial, end_of(trial.plan, code, *lines, was_healthy=healthy))
        changes += 1
        if trial is not None:
            assert all(reason.remedy and reason.message for reason in trial.given_up)
    assert changes <= 14
