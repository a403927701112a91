"""The class of a start that nothing could save, with its sentence and remedy (06 §14.1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.runtime.failures import classify
from framework.runtime.rungs import Trial, next_trial, tensor_abort
from framework.runtime.start_end import StartEnd, describe_exit
from tests.support.start_ends import (
    DIVIDED,
    NO_PROJECTOR,
    SIGABRT,
    SIGILL,
    SIGKILL,
    SIGSEGV,
    SIGTERM,
    TOO_LARGE,
    TOO_LITTLE,
    UNKNOWN,
    end_of,
    the_plan,
)

BACKTRACE = (
    "[Thread debugging using libthread_db enabled]",
    "0x00007f2bd2af1c17 in __GI___wait4 (pid=1) at ../sysdeps/unix/sysv/linux/wait4.c:30",
    "30\t../sysdeps/unix/sysv/linux/wait4.c: No such file or directory.",
    *(f"#{number}  0x00007f in frame ()" for number in range(600)),
    "[Inferior 1 (process 7) detached]",
)
REFUSED_VARIABLE = (
    'error while handling environment variable "LLAMA_ARG_DRAFT_MAX": the argument has been removed',
)


@pytest.mark.parametrize(
    ("code", "lines", "told", "words"),
    [
        pytest.param(
            1,
            ("E x: SPLIT_MODE_TENSOR not implemented for architecture 'rwkv'",),
            "tensor_unsupported",
            "'rwkv'",
            id="tensor split",
        ),
        pytest.param(1, UNKNOWN, "unsupported_architecture", "'womba'", id="architecture"),
        pytest.param(SIGILL, (), "cpu_unsupported", "signal 4", id="instruction"),
        pytest.param(SIGKILL, (), "killed_by_os", "killed", id="killed"),
        pytest.param(SIGTERM, (), "terminated", "from outside", id="terminated"),
        pytest.param(1, REFUSED_VARIABLE, "user_flag_rejected", "LLAMA_ARG_DRAFT_MAX", id="variable"),
        pytest.param(1, TOO_LITTLE, "out_of_memory", "less memory", id="memory"),
        pytest.param(SIGABRT, (*TOO_LARGE, *BACKTRACE), "out_of_memory", "cache_k_l0", id="backtrace"),
        pytest.param(127, (), "library_missing", "missing", id="nothing to run"),
        pytest.param(1, (), "start_failed", "exit code 1", id="anything else"),
    ],
)
def test_each_end_has_its_class(code: int, lines: tuple[str, ...], told: str, words: str) -> None:
    reason = classify(end_of(the_plan(), code, *lines)).reason
    assert reason.code == told
    assert words in reason.message
    assert reason.remedy


def test_a_refused_variable_says_where_it_can_stand() -> None:
    remedy = classify(end_of(the_plan(), 1, *REFUSED_VARIABLE)).reason.remedy
    assert "models.demo.env" in remedy
    assert "engines.default.env" in remedy


@pytest.mark.parametrize(
    ("main", "lines", "told"),
    [
        pytest.param("/u/.ollama/models/blobs/sha256-1", UNKNOWN, "ollama_model", id="architecture"),
        pytest.param("/u/.cache/ollama/b", ("E key not found in model: x",), "ollama_model", id="key"),
        pytest.param("/u/.cache/ollama/b", TOO_LITTLE, "out_of_memory", id="memory is memory"),
        pytest.param("/u/ollama/b", UNKNOWN, "unsupported_architecture", id="another folder"),
    ],
)
def test_files_of_ollama_are_told_apart(main: str, lines: tuple[str, ...], told: str) -> None:
    plan = replace(the_plan(), main_gguf=Path(main))
    assert classify(end_of(plan, 1, *lines)).reason.code == told


@pytest.mark.parametrize(
    ("before", "code", "lines", "told"),
    [
        pytest.param((SIGSEGV, ()), SIGSEGV, (), "gpu_driver", id="both broke"),
        pytest.param((1, NO_PROJECTOR), 1, (), "projector_mismatch", id="blamed"),
        pytest.param((SIGSEGV, ()), 1, (), "vision_start", id="not blamed"),
        pytest.param((SIGSEGV, ()), 1, TOO_LITTLE, "out_of_memory", id="memory is memory"),
        pytest.param((1, NO_PROJECTOR), SIGTERM, (), "terminated", id="ended from outside"),
    ],
)
def test_a_start_that_failed_without_its_projector_too_says_so(
    before: tuple[int, tuple[str, ...]], code: int, lines: tuple[str, ...], told: str
) -> None:
    plan = the_plan("projector: --mmproj /models/p.gguf")
    first = end_of(plan, before[0], *before[1])
    reason = classify(end_of(plan, code, *lines, before_text_only=first)).reason
    assert reason.code == told
    if told == "projector_mismatch":
        assert "Failed to load CLIP model" in reason.message
    if told == "gpu_driver":
        assert describe_exit(SIGSEGV) in reason.message


def test_the_cause_is_found_in_front_of_any_backtrace() -> None:
    end = end_of(the_plan(), SIGABRT, "E x: the real cause: an error", *BACKTRACE)
    assert "the real cause" in classify(end).reason.message


@pytest.mark.parametrize(
    "name",
    ["out of memory", "failed to load draft model", "unknown model architecture: 'flux'", "couldn't bind"],
)
def test_what_a_model_calls_itself_is_no_cause(name: str) -> None:
    end = end_of(the_plan(), 1, f"0.00.1 I llama_model_loader: - kv 3: general.name str = {name}")
    assert classify(end).reason.code == "start_failed"


NAME_LINES = (
    "0.00.1 I llama_model_loader: - kv 3: general.name str = {}",
    "llama_model_loader: - kv   3: general.name str = {}",
    "print_info: general.name = {}",
    "0.00.2 W load: control-looking token: 7 '{}' was not control-type",
)
NAMES = (
    "error: invalid argument: --metrics",
    'error while handling environment variable "LLAMA_ARG_HOST": no',
    'error while handling argument "--spec-type": no',
    "GGML_ASSERT(axis != GGML_BACKEND_SPLIT_AXIS_NONE) failed",
    "out of memory",
    "unknown model architecture: 'flux'",
)


def rung_after(end: StartEnd) -> str:
    following = next_trial(Trial(end.plan), end)
    return following.rung if following is not None else "R6"


@pytest.mark.parametrize("code", [1, SIGABRT])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", NAME_LINES)
def test_no_name_of_a_model_takes_anything_from_its_start(form: str, name: str, code: int) -> None:
    plan = the_plan(placed=DIVIDED, flash="off", spec="--spec-type ngram-mod")
    end = end_of(plan, code, "0.00.1 I llama_model_loader: loaded meta data", form.format(name))
    assert rung_after(end) == "R4"  # as without that line
    assert tensor_abort(end) is None
    assert classify(end).reason.code == "start_failed"


@pytest.mark.parametrize("said", NAMES[:3])
def test_nothing_that_is_said_after_a_model_was_looked_at_is_of_the_line(said: str) -> None:
    plan = the_plan(placed=DIVIDED, spec="--spec-type ngram-mod")
    end = end_of(plan, 1, "llama_model_loader: loaded meta data with 30 key-value pairs", said)
    assert rung_after(end) == "R4"
    assert classify(end).reason.code == "start_failed"


ARCHITECTURES = (
    *NAMES[:4],
    "couldn't bind",
    "address already in use",
    "failed to load draft model",
    "out of memory",
    "x' failed to load draft model, 'y",
    "v cache quantization requires flash_attn",
    "split_mode_tensor not implemented",
    "failed to load clip model",
)


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("form", ["{}", "x'\n{}", "x\n0.00.1 E {}"])
def test_no_architecture_is_anything_but_unknown(form: str, name: str) -> None:
    plan = the_plan("projector: --mmproj /models/p.gguf", spec="--spec-type ngram-mod")
    said = f"E llama_model_load: error loading model: unknown model architecture: '{form.format(name)}'"
    for lines in ((said,), said.splitlines()):
        end = end_of(plan, 1, *lines, "E srv load_model: failed to load model, '/m.gguf'")
        assert rung_after(end) == "R6"
        reason = classify(end).reason
        assert reason.code == "unsupported_architecture"
        assert "\n" not in reason.message


def test_a_name_of_several_lines_is_no_cause() -> None:
    told = ("print_info: general.name = x", "out of memory", "print_info: vocab type = BPE", "E a true error")
    assert "a true error" in classify(end_of(the_plan(), 1, *told)).reason.message


@pytest.mark.parametrize(
    "said",
    [
        "error: unknown model architecture: '{}'",
        "an error of the engine: {}",
        "error: invalid argument: -{}",
        'error while handling environment variable "LLAMA_ARG_HOST": {}',
        "error while loading shared libraries: {}",
    ],
)
def test_what_an_engine_says_is_shown_cut_and_as_plain_text(said: str) -> None:
    message = classify(end_of(the_plan(), 1, said.format("a\x1b[31m\u202e" + "a" * 5000))).reason.message
    assert len(message) < 600
    assert message.isprintable()


def test_who_holds_the_port_is_said() -> None:
    end = end_of(the_plan(), None, outcome="port_taken", port_holder="process 7 (thief)")
    reason = classify(end).reason
    assert reason.code == "port_conflict"
    assert "process 7 (thief)" in reason.message


def test_a_start_that_could_not_generate_says_how_far_it_came() -> None:
    end = end_of(the_plan(), SIGSEGV, was_healthy=True)
    assert "got ready and ended with signal 11 (SIGSEGV) at the first tokens" in classify(end).reason.message


@given(st.lists(st.text(max_size=80), max_size=20), st.integers(-64, 255) | st.none())
def test_any_output_gives_a_class_a_sentence_and_a_remedy(lines: list[str], code: int | None) -> None:
    failure = classify(end_of(the_plan(), code, *lines))
    assert failure.reason.message
    assert failure.reason.remedy
    assert failure.reason.severity == "error"


@pytest.mark.parametrize(
    ("line", "what", "lists"),
    [
        ("error: invalid argument: --jinjaa", "the flag --jinjaa", True),
        (
            'error while handling argument "--jinjaa": the argument has been removed.',
            "the flag --jinjaa",
            True,
        ),
        ('error while handling argument "--jinjaa": no number', "the value of --jinjaa", False),
    ],
)
def test_a_value_that_was_refused_is_told_apart_from_its_flag(line: str, what: str, lists: bool) -> None:
    reason = classify(end_of(the_plan(user="--jinjaa x"), 1, line)).reason
    assert reason.message == f"The engine refused {what}. It said: {line.rstrip('.')}."
    assert ("`paddock engines` lists" in reason.remedy) is lists
    assert "--jinjaa" in reason.remedy


def test_without_an_error_the_last_line_is_quoted() -> None:
    lines = ("E x: looking", "the tokenizer gave up", "srv  exiting due to model loading error", "")
    assert "It said: the tokenizer gave up" in classify(end_of(the_plan(), 1, *lines[1:])).reason.message
    assert "It said: the tokenizer gave up" in classify(end_of(the_plan(), 1, *lines)).reason.message
