"""What is changed after a start that broke where tensors are divided, or at its first tokens (06 §12.7)."""

from __future__ import annotations

import pytest

from framework.runtime.failures import classify
from framework.runtime.rungs import Trial, next_trial, tensor_abort
from framework.values.plan import LaunchPlan
from tests.support.start_ends import (
    CANNOT_DIVIDE,
    DIVIDED,
    HEAD,
    SIGABRT,
    SIGSEGV,
    after,
    codes,
    end_of,
    line,
    the_plan,
)

BACKTRACE_ALONE = (
    "/usr/lib/libggml-base.so.0(ggml_abort+0x152) [0x7f2bd2af1c17]",
    "/usr/lib/libggml-base.so.0(ggml_backend_meta_split_axis+0x1f) [0x7f2bd2af1d20]",
)
SPLIT = "general.name: GGML_BACKEND_SPLIT_AXIS_NONE GGML_ASSERT"


@pytest.mark.parametrize(
    ("placed", "code", "lines", "is_abort"),
    [
        pytest.param(DIVIDED, SIGABRT, CANNOT_DIVIDE, True, id="abort"),
        pytest.param(DIVIDED, 3, CANNOT_DIVIDE, True, id="abort of another runtime"),
        pytest.param(DIVIDED, SIGABRT, CANNOT_DIVIDE[1:], False, id="another abort"),
        pytest.param(DIVIDED, SIGABRT, BACKTRACE_ALONE, True, id="a backtrace alone"),
        pytest.param(DIVIDED, SIGABRT, (SPLIT, "0.1 I ggml_abort"), False, id="words of a file"),
        pytest.param(DIVIDED, 1, CANNOT_DIVIDE, False, id="no abort"),
        pytest.param("--fit on", SIGABRT, CANNOT_DIVIDE, False, id="layers divided"),
    ],
)
def test_a_tensor_abort_is_seen_for_what_it_is(
    placed: str, code: int, lines: tuple[str, ...], is_abort: bool
) -> None:
    reason = tensor_abort(end_of(the_plan(placed=placed), code, *lines))
    assert (reason is not None and reason.code == "tensor_abort") is is_abort


def test_the_last_split_mode_of_the_line_counts() -> None:
    plan = the_plan(placed=DIVIDED, user="-sm layer")
    assert tensor_abort(end_of(plan, SIGABRT, *CANNOT_DIVIDE)) is None


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(the_plan(user="-sm tensor"), id="flag"),
        pytest.param(the_plan(env={"LLAMA_ARG_SPLIT_MODE": "tensor"}), id="variable"),
    ],
)
def test_tensors_that_the_user_divides_are_not_planned_otherwise(plan: LaunchPlan) -> None:
    end = end_of(plan, SIGABRT, *CANNOT_DIVIDE)
    assert tensor_abort(end) is None
    assert next_trial(Trial(plan), end) is None
    assert classify(end).reason.code == "tensor_unsupported"


def test_a_break_at_the_first_tokens_is_tried_without_flash_attention() -> None:
    trial = after(the_plan(placed=DIVIDED, spec=HEAD), SIGSEGV, healthy=True)
    assert trial.rung == "R3"
    assert "--flash-attn off" in line(trial)
    assert "draft-mtp" in line(trial)


def test_an_error_at_the_first_tokens_ends_drafting() -> None:
    plan = the_plan(placed=DIVIDED, spec=HEAD)
    end = end_of(plan, None, outcome="decode_failed", was_healthy=True)
    trial = next_trial(Trial(plan), end)
    assert trial is not None
    assert trial.rung == "R4"
    assert trial.drafting_dropped is not None
    assert "could not generate" in trial.drafting_dropped.message


def test_flash_attention_that_was_not_the_cause_comes_back_with_drafting_gone() -> None:
    trial = after(the_plan(placed=DIVIDED, spec=HEAD), SIGSEGV, healthy=True)
    following = next_trial(trial, end_of(trial.plan, SIGSEGV))
    assert following is not None
    assert following.rung == "R4"
    assert "--flash-attn on" in line(following)
    assert codes(following) == ["runtime_error"]
    bare = next_trial(following, end_of(following.plan, SIGSEGV))
    assert bare is not None
    assert "--spec" not in line(bare)
    assert next_trial(bare, end_of(bare.plan, SIGSEGV)) is None


def test_flash_attention_stays_off_where_only_the_second_probe_failed() -> None:
    trial = after(the_plan(placed=DIVIDED, spec=HEAD), SIGSEGV, healthy=True)
    following = next_trial(trial, end_of(trial.plan, SIGSEGV, was_healthy=True))
    assert following is not None
    assert following.rung == "R4"
    assert "--flash-attn off" in line(following)
