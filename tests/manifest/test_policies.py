"""`[speculation.NAME]`: what becomes of its keys, and what does not go together (01 §1.1, 05 §0, §2)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from framework.manifest.spec_modes import (
    ACCEPTED,
    CANONICAL,
    MODES_OF_DRAFTER,
    MODES_WITH_DRAFTER,
    TYPES_WITHOUT_MODE,
)
from framework.values.request import LiveSettings, ModelSource, SpecPolicy
from tests.manifest.conftest import Load
from tests.manifest.reading import MODEL, Reading, read

GUARD = {
    "mode": "stop",
    "min_reasoning_tokens": 512,
    "window_tokens": 384,
    "max_period": 96,
    "min_repeated_coverage": 192,
    "check_interval": 32,
    "interventions_max": 1,
}


def policy(keys: str) -> Reading:
    """A manifest whose model has a policy with these keys."""
    return read(f'[speculation.s]\n{keys}\n{MODEL}speculation = "s"\n')


def test_a_policy_is_used_by_name() -> None:
    keys = 'mode = "ngram"\nngram = { match = 8, min = 4, max = 16 }'
    assert policy(keys).request().spec == SpecPolicy("ngram", ngram_match=8, ngram_min=4, ngram_max=16)


def test_without_a_policy_the_mode_is_auto() -> None:
    assert read(MODEL).request().spec == SpecPolicy()


def test_an_empty_policy_is_no_policy() -> None:
    assert policy("").request() == read(MODEL).request()


@pytest.mark.parametrize("mode", CANONICAL)
def test_every_mode_is_legal_without_a_drafter(mode: str) -> None:
    reading = policy(f'mode = "{mode}"')
    codes = ["draft_missing"] if mode in MODES_OF_DRAFTER else []
    assert (reading.request().spec.mode, [warning.code for warning in reading.warnings]) == (mode, codes)


def test_a_drafter_that_its_mode_needs_is_missed_where_the_mode_is_written() -> None:
    (warning,) = policy('mode = "draft-eagle3"').warnings
    assert (warning.path, warning.line, warning.column) == ("speculation.s.mode", 2, 8)
    assert '"draft-eagle3" needs draft' in warning.message


def test_a_drafter_that_is_written_wrongly_is_not_missed_besides() -> None:
    reading = policy('mode = "draft"\ndraft = 5')
    assert (reading.only.path, reading.warnings) == ("speculation.s.draft", [])


@pytest.mark.parametrize(
    ("keys", "field", "value"),
    [
        ("depth = 5", "depth", 5),
        ("depth = 5", "is_adaptive", False),
        ('depth = "default"', "depth", None),
        ('depth = "adaptive"', "depth", None),
        ('depth = "adaptive"', "is_adaptive", True),
        ('controller = "fringe"', "controller", "fringe"),
        ('loop_guard = "off"', "loop_guard", {}),
        ("loop_guard = { window_tokens = 600 }", "loop_guard", {}),
        ('loop_guard = "stop"', "loop_guard", GUARD),
        ('loop_guard = { mode = "stop", max_period = 7 }', "loop_guard", {**GUARD, "max_period": 7}),
        ('draft = "d.gguf"', "drafter", ModelSource(path=Path("/nowhere/d.gguf"))),
        ('draft = "hf:o/r:Q4_0"', "drafter", ModelSource(repo="o/r", variant="Q4_0")),
        ('draft = "hf:o/r/MTP/d.gguf"', "drafter", ModelSource(repo="o/r", file="MTP/d.gguf")),
        ("min_head = 7", "min_head_params_b", 7.0),
        ("allow_mla = true", "allow_mla", True),
    ],
)
def test_a_key_of_a_policy_becomes_its_field(keys: str, field: str, value: Any) -> None:
    assert getattr(policy(keys).request().spec, field) == value


@pytest.mark.parametrize("depth", ["0", "-1", "65", "2.5", "true", '"3"', '"deep"'])
def test_a_depth_is_a_word_or_a_number_from_1(depth: str) -> None:
    problem = policy(f"depth = {depth}").only
    assert problem.path == "speculation.s.depth"
    assert "1 to 64" in problem.message


@pytest.mark.parametrize("mode", ["off", "stop", "force-close"])
@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ("window_tokens = 100", "window_tokens 100 and min_repeated_coverage 192 by default"),
        ("max_period = 129", "max_period 129 and window_tokens 384 by default"),
        ("min_reasoning_tokens = 191", "min_reasoning_tokens 191 and min_repeated_coverage 192 by default"),
        (
            "max_period = 34, window_tokens = 100, min_repeated_coverage = 9",
            "max_period 34 and window_tokens 100",
        ),
    ],
)
def test_numbers_of_a_guard_that_do_not_fit_are_refused(mode: str, numbers: str, found: str) -> None:
    problem = policy(f'loop_guard = {{ mode = "{mode}", {numbers} }}').only
    assert (problem.code, problem.path) == ("loop_guard_numbers", "speculation.s.loop_guard")
    assert "write both" in problem.message
    assert problem.message.endswith(f"but is {found}")


def test_numbers_of_a_guard_that_just_fit_are_taken() -> None:
    numbers = "window_tokens = 100, max_period = 33, min_repeated_coverage = 100, min_reasoning_tokens = 100"
    assert policy(f'loop_guard = {{ mode = "stop", {numbers} }}').errors == []


@pytest.mark.parametrize("watch", ["switch-off", "report", "off"])
def test_the_watch_over_its_yield_is_live(watch: str) -> None:
    request = policy(f'yield_watch = "{watch}"').request()
    assert (request.live.yield_watch, request.spec) == (watch, SpecPolicy())


def test_without_a_policy_what_does_not_pay_is_switched_off() -> None:
    assert read(MODEL).request().live == LiveSettings(yield_watch="switch-off")


# What does not go together


def test_an_unknown_mode_is_a_warning_with_all_spellings_and_runs_as_auto() -> None:
    reading = policy('mode = "ngrm"')
    (warning,) = reading.warnings
    assert (warning.code, warning.path) == ("unknown_spec_mode", "speculation.s.mode")
    assert (warning.suggestion, warning.allowed) == ('"ngram"', ", ".join(ACCEPTED))
    assert reading.request().spec.mode == "auto"


@pytest.mark.parametrize(
    ("mode", "runs_as", "unused"),
    [
        ("ngram-mod,draft-simple", "ngram", '"draft-simple" counts'),
        ("mtp, x, y", "mtp", '"x", "y" count'),
        ("MTP,ngram,draft,draft", "mtp+ngram", '"draft" counts'),
    ],
)
def test_parts_of_a_list_that_count_for_nothing_are_told(mode: str, runs_as: str, unused: str) -> None:
    reading = policy(f'mode = "{mode}"')
    (warning,) = reading.warnings
    where = (warning.code, warning.path, warning.found)
    assert where == ("unknown_spec_mode", "speculation.s.mode", f'"{mode}"')
    assert f'"{mode}" runs as {runs_as}; {unused} for nothing' in warning.message
    assert reading.request().spec.mode == runs_as


@pytest.mark.parametrize("mode", ["ngram-mod,draft-mtp", " ngram , mtp ", "mtp,", "mtp,draft-mtp"])
def test_a_list_of_which_all_counts_is_fine(mode: str) -> None:
    assert policy(f'mode = "{mode}"').warnings == []


@pytest.mark.parametrize("mode", [*TYPES_WITHOUT_MODE, "ngram-mod,ngram-cache"])
def test_a_type_that_is_no_mode_is_pointed_to_the_flag(mode: str) -> None:
    (warning,) = policy(f'mode = "{mode}"').warnings
    word = mode.rpartition(",")[2]
    assert f'engine_args = ["--spec-type", "{word}"]' in warning.message
    assert warning.suggestion == ""


@pytest.mark.parametrize("mode", [*MODES_WITH_DRAFTER, "draft-mtp", "default", "no such mode"])
def test_a_drafter_goes_with_a_mode_that_loads_it(mode: str) -> None:
    assert policy(f'mode = "{mode}"\ndraft = "hf:o/r:Q4_0"').errors == []


@pytest.mark.parametrize("mode", ['"off"', '"ngram"', '"ngram-simple"', '"none"', "false"])
def test_a_drafter_beside_another_mode_is_an_error(mode: str) -> None:
    problem = policy(f'mode = {mode}\ndraft = "hf:o/r:Q4_0"').only
    assert (problem.code, problem.path, problem.line) == ("draft_unused", "speculation.s.draft", 3)
    assert problem.allowed == ", ".join(MODES_WITH_DRAFTER)


def test_a_drafter_beside_a_list_is_told_of_the_mode_as_it_is_written() -> None:
    problem = policy('mode = "ngram-mod,draft-simple"\ndraft = "d.gguf"').only
    assert (problem.code, problem.found) == ("draft_unused", '"ngram-mod,draft-simple"')
    assert 'mode "ngram-mod,draft-simple", which runs as ngram, drafts without' in problem.message


def test_a_depth_beside_n_grams_is_pointed_to_the_length_of_theirs() -> None:
    (warning,) = policy('mode = "ngram"\ndepth = 64').warnings
    assert (warning.code, warning.path) == ("depth_unused", "speculation.s.depth")
    assert warning.suggestion == "ngram.max = 64"


@pytest.mark.parametrize(
    ("keys", "suggestion"),
    [
        ("depth = 16", ""),
        ("depth = 47", ""),
        ("depth = 48", "ngram.max = 48"),
        ("ngram.min = 8\ndepth = 16", "ngram.max = 16"),
        ("ngram.min = 8\ndepth = 7", ""),
    ],
)
def test_what_is_suggested_for_a_depth_beside_n_grams_is_no_mistake_itself(
    keys: str, suggestion: str
) -> None:
    (warning,) = policy(f'mode = "ngram"\n{keys}').warnings
    assert warning.suggestion == suggestion
    kept = "" if "ngram.min" not in keys else "ngram.min = 8\n"
    if suggestion:
        assert policy(f'mode = "ngram"\n{kept}{suggestion}').errors == []


@pytest.mark.parametrize(("keys", "least"), [("", 48), ("ngram.min = 8\n", 8)])
def test_it_is_told_where_the_lengths_of_n_grams_begin(keys: str, least: int) -> None:
    (warning,) = policy(f'mode = "ngram"\n{keys}depth = 7').warnings
    assert warning.message.endswith(f"not below ngram.min = {least}")


@pytest.mark.parametrize("keys", ['mode = "mtp"\ndepth = 16', 'mode = "ngram"\ndepth = "default"'])
def test_a_depth_that_counts_or_says_nothing_is_fine(keys: str) -> None:
    assert policy(keys).warnings == []


def test_a_drafter_that_is_not_there_is_a_warning_and_the_models_run(load: Load, tmp_path: Path) -> None:
    reading = load('[speculation.s]\nmode = "draft"\ndraft = "d.gguf"\n' + MODEL, m_gguf="")
    (warning,) = reading.warnings
    assert (warning.code, warning.path) == ("file_missing", "speculation.s.draft")
    assert str(tmp_path / "d.gguf") in warning.message
    assert "run without" in warning.message


@pytest.mark.parametrize(
    ("draft", "why"),
    [
        (".", "is a folder"),
        ("/", "is a folder"),
        ("/dev/zero", "is no regular file"),
        ("pipe", "is no regular file"),
        ("d" * 300, "cannot be read: file name too long"),
        ("m.gguf/d.gguf", "does not exist"),
    ],
)
def test_a_drafter_that_is_no_file_is_a_warning_too(load: Load, tmp_path: Path, draft: str, why: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    reading = load(f'[speculation.s]\nmode = "draft"\ndraft = "{draft}"\n{MODEL}', m_gguf="")
    (warning,) = reading.warnings
    assert (warning.code, warning.path) == ("file_missing", "speculation.s.draft")
    assert f" {why}; models run without this drafter" in warning.message


@pytest.mark.parametrize("ngram", ["{ match = 0 }", "{ min = -1 }", "{ min = 9, max = 8 }", "{ max = 10 }"])
def test_lengths_of_drafts_are_positive_and_in_order(ngram: str) -> None:
    assert read(f"[speculation.s]\nngram = {ngram}").only.path.startswith("speculation.s.ngram")


@pytest.mark.parametrize(
    ("ngram", "found"),
    [
        ("{ max = 4 }", "min 48 by default and max 4"),
        ("{ min = 65 }", "min 65 and max 64 by default"),
        ("{ min = 9, max = 8 }", "min 9 and max 8"),
    ],
)
def test_lengths_out_of_order_are_told_with_those_that_are_not_written(ngram: str, found: str) -> None:
    problem = read(f"[speculation.s]\nngram = {ngram}").only
    allowed = "lengths with min <= max (write both)"
    assert (problem.found, problem.allowed) == (found, allowed)
    assert problem.message == f"speculation.s.ngram must be {allowed}, but is {found}"
