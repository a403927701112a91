"""Starts that break while something drafts: when that is left out, what takes its place, and what comes back
(06 §12.2 R4, 05 §6.4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framework.runtime.failures import classify
from framework.runtime.rungs import Trial, next_trial
from framework.values.plan import Section
from tests.support.start_ends import (
    CAPS,
    HEAD,
    NO_DRAFTER,
    NO_HEAD,
    NO_PROJECTOR,
    OF_THE_USER,
    PROJECTOR,
    SIGABRT,
    SIGSEGV,
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

NO_FILE = ("0.00.1 E gguf_init_from_file: failed to open GGUF file '/models/x.gguf'",)


def test_the_default_takes_the_place_of_a_head() -> None:
    trial = after(the_plan(spec=HEAD), 1, *NO_HEAD)
    assert "--spec-default" in line(trial)
    assert "draft" not in line(trial)
    assert trial.plan.spec.resolved == "default"
    reason = trial.drafting_dropped
    assert reason is not None
    assert reason.code == "runtime_error"
    assert "doesn't contain MTP layers" in reason.message
    assert reason.evidence["types"] == ["draft-mtp"]


def test_nothing_takes_its_place_where_the_build_has_no_default() -> None:
    caps = replace(CAPS, flags=CAPS.flags - {"--spec-default"})
    trial = after(the_plan(spec=HEAD, caps=caps), 1, *NO_HEAD)
    assert "--spec" not in line(trial)
    assert trial.plan.spec.resolved == "none"


def test_no_variable_goes_on_naming_a_drafter() -> None:
    named = ("LLAMA_ARG_SPEC_DRAFT_MODEL", "LLAMA_ARG_MODEL_DRAFT", "LLAMA_ARG_SPEC_DRAFT_HF_REPO")
    env = {**dict.fromkeys((*named, "LLAMA_ARG_HFD_REPO"), "x"), "LLAMA_ARG_SPEC_DRAFT_N_MAX": "3"}
    trial = after(the_plan(spec=HEAD, env=env), 1, *NO_HEAD)
    assert trial.plan.env == {"LLAMA_ARG_SPEC_DRAFT_N_MAX": "3"}


def test_what_the_user_wrote_is_taken_out_since_nothing_switches_it_off() -> None:
    plan = the_plan(user="--temp 0 --spec-type draft-mtp --spec-default --top-k 1")
    trial = after(plan, 1, *NO_HEAD)
    assert line(trial).endswith("--temp 0 --top-k 1")
    assert trial.plan.spec.resolved == "none"


@pytest.mark.parametrize(
    ("spec", "code", "lines", "rung"),
    [
        pytest.param("--spec-type draft-simple", 1, NO_DRAFTER, "R4", id="drafter blamed"),
        pytest.param("--spec-type draft-simple", SIGSEGV, (), "R4", id="drafter missing, silent"),
        pytest.param("--spec-type draft-simple", 1, (), "R4", id="drafter not blamed"),
        pytest.param("--spec-type draft-simple", 1, TOO_LITTLE, "R4", id="a drafter that did not fit"),
        pytest.param("--spec-type draft-simple", 1, UNKNOWN, "R4", id="a drafter that is too new"),
        pytest.param("--spec-type draft-simple", 1, NO_FILE, "R6", id="another file is the cause"),
        pytest.param("--spec-type ngram-mod", 1, NO_DRAFTER, "R4", id="n-grams blamed"),
        pytest.param("--spec-type ngram-mod", SIGSEGV, (), "R4", id="n-grams not blamed"),
        pytest.param("--spec-default", 1, (), "R4", id="the engine's own choice"),
        pytest.param("--spec-default", 1, UNKNOWN, "R6", id="n-grams have no architecture"),
        pytest.param("--spec-default", 1, TOO_LITTLE, "R6", id="n-grams take no memory"),
        pytest.param("--spec-default", 1, V_NEEDS_FLASH, "R6", id="n-grams have no cache"),
        pytest.param("--spec-default", 127, (), "R6", id="nothing to run"),
        pytest.param("--spec-type ngram-mod,draft-mtp", SIGSEGV, (), "R4", id="chained"),
    ],
)
def test_other_kinds_of_drafting_go_where_they_are_the_cause(
    spec: str, code: int, lines: tuple[str, ...], rung: str
) -> None:
    plan = the_plan(spec=spec, flash="off", **OF_THE_USER)
    assert climbed(plan, (code, lines)) == [rung]


def test_n_grams_that_are_blamed_are_not_replaced_by_n_grams() -> None:
    trial = after(the_plan(spec="--spec-type ngram-mod"), 1, *NO_DRAFTER)
    assert "--spec" not in line(trial)


@pytest.mark.parametrize(
    ("spec", "lines", "told"),
    [
        pytest.param(HEAD, NO_HEAD, "runtime_error", id="head"),
        pytest.param(HEAD, UNKNOWN, "binary_outdated", id="too new"),
        pytest.param("--model-draft /d.gguf --spec-type draft-simple", (), "runtime_error", id="drafter"),
    ],
)
def test_the_n_grams_that_took_its_place_are_left_out_too_where_they_break(
    spec: str, lines: tuple[str, ...], told: str
) -> None:
    first = after(the_plan(spec=spec, flash="off", **OF_THE_USER), 1, *lines)
    assert codes(first) == [told]
    assert "N-grams by --spec-default draft now" in first.given_up[0].message
    second = next_trial(first, end_of(first.plan, SIGABRT))
    assert second is not None
    assert "spec" not in line(second)
    assert second.plan.spec.resolved == "none"
    assert codes(second) == ["runtime_error"]
    reason = second.given_up[0]
    assert reason == second.drafting_dropped
    assert "--spec-default in its place it ended with signal 6" in reason.message
    assert "Nothing drafts now" in reason.message
    assert reason.evidence["types"][-1] == "ngram-mod"
    assert next_trial(second, end_of(second.plan, SIGABRT)) is None


def test_a_default_that_is_refused_leaves_a_reason_that_names_what_was_to_draft() -> None:
    caps = replace(CAPS, conclusive=False, flags=frozenset())
    first = after(the_plan(spec=HEAD, caps=caps), 1, *NO_HEAD)
    second = next_trial(first, end_of(first.plan, 1, "error: invalid argument: --spec-default"))
    assert second is not None
    assert (second.rung, codes(second)) == ("U", ["flag_rejected", "runtime_error"])
    assert second.drafting_dropped == second.given_up[1]
    assert "draft-mtp" in second.given_up[1].message
    assert "Nothing drafts now" in second.given_up[1].message


def test_a_projector_that_is_blamed_costs_no_drafting() -> None:
    plan = the_plan(PROJECTOR, spec=HEAD, **OF_THE_USER)
    assert climbed(plan, (1, NO_PROJECTOR), (1, NO_HEAD)) == ["R5", "R4"]


# Flash attention that was not the cause


def without_drafting(code: int = SIGSEGV, **plan: str) -> Trial:
    """The try after one without flash attention, both of which ended."""
    first = after(the_plan(spec=HEAD, **{**OF_THE_USER, **plan}), SIGSEGV)
    assert first.rung == "R2"
    second = next_trial(first, end_of(first.plan, code))
    assert second is not None
    assert second.rung == "R4"
    return second


def test_flash_attention_comes_back_where_it_broke_the_same_way_without() -> None:
    trial = without_drafting()
    assert "--flash-attn on" in line(trial)
    assert "draft-mtp" not in line(trial)
    assert codes(trial) == ["runtime_error"]


def test_flash_attention_stays_off_where_that_led_further() -> None:
    trial = without_drafting(SIGABRT)
    assert "--flash-attn off" in line(trial)
    assert codes(trial) == ["flash_attn_off", "runtime_error"]


def test_what_was_given_back_is_taken_again_where_both_break() -> None:
    trial = without_drafting()
    none = next_trial(trial, end_of(trial.plan, SIGSEGV))
    assert none is not None
    assert (none.rung, "spec" in line(none), "--flash-attn on" in line(none)) == ("R4", False, True)
    off = next_trial(none, end_of(none.plan, SIGSEGV))
    assert off is not None
    assert (off.rung, codes(off)) == ("R2", ["runtime_error", "flash_attn_off"])
    assert "--flash-attn off" in line(off)
    assert "spec" not in line(off)
    assert next_trial(off, end_of(off.plan, SIGSEGV)) is None


# What the user wrote in one piece


@pytest.mark.parametrize("token", ["--spec-type none", " --spec-type=none", "--metrics 3"])
def test_a_flag_and_its_value_in_one_piece_are_the_users(token: str) -> None:
    plan = the_plan(spec=HEAD)
    plan = replace(
        plan,
        sections=(*plan.sections, Section("user", (token,), "user")),
        request=replace(plan.request, extra_args=(token,)),
    )
    end = end_of(plan, 1, f"error: invalid argument: {token}")
    assert next_trial(Trial(plan), end) is None
    reason = classify(end).reason
    assert reason.code == "user_flag_rejected"
    assert "two items" in reason.remedy


def test_an_architecture_that_is_too_new_names_the_build() -> None:
    reason = after(the_plan(spec=HEAD), 1, *UNKNOWN).drafting_dropped
    assert reason is not None
    assert reason.code == "binary_outdated"
    assert "'womba'" in reason.message
    assert "newer llama.cpp build" in reason.remedy


def test_drafting_that_found_no_memory_says_what_leaves_room() -> None:
    reason = after(the_plan(spec=HEAD), 1, *TOO_LITTLE).drafting_dropped
    assert reason is not None
    assert "shorter context" in reason.remedy
