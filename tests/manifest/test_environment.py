"""Variables that never reach an engine are told where they are written (06 §7.3)."""

from __future__ import annotations

import pytest

from framework.engines.child_env import child_environment
from framework.engines.library_path import LibraryPath
from framework.manifest.environment import (
    ENGINE_KEY,
    NEVER,
    PLACEMENT_VARIABLES,
)
from framework.values.drafter_variables import DRAFTER_VARIABLES
from tests.manifest.reading import MODEL, read, read_model

MANUAL = 'placement = { mode = "manual" }\n'


def environment(*names: str) -> str:
    """The key with these variables."""
    return "environment = { " + ", ".join(f'{name} = "hidden"' for name in names) + " }\n"


@pytest.mark.parametrize("name", NEVER)
def test_a_variable_that_no_engine_gets_is_a_warning_at_its_line(name: str) -> None:
    (warning,) = read_model(environment(name)).warnings
    assert (warning.code, warning.path) == ("variable_unused", f"models.m.environment.{name}")
    assert warning.line == 3
    assert warning.message.endswith(NEVER[name])
    assert "hidden" not in f"{warning.message} {warning.found}"


@pytest.mark.parametrize("table", ["[engines.default]", "[defaults]"])
def test_it_is_told_once_of_what_models_share(table: str) -> None:
    text = f'{table}\n{environment("LLAMA_ARG_SPEC_TYPE")}[models.n]\nsource = "n.gguf"\n{MODEL}'
    assert [(one.code, one.line) for one in read(text).warnings] == [("variable_unused", 2)]


def test_variables_that_reach_the_engine_are_fine() -> None:
    assert read_model(environment("LLAMA_ARG_CTX_CHECKPOINTS", *PLACEMENT_VARIABLES)).warnings == []


def test_placement_by_hand_takes_the_variables_of_placement_away() -> None:
    reading = read_model(MANUAL + environment(*PLACEMENT_VARIABLES))
    assert [one.found for one in reading.warnings] == list(PLACEMENT_VARIABLES)


@pytest.mark.parametrize(("mode", "count"), [("off", 4), ("ngram", 4), ("auto", 0), ("mtp", 0)])
def test_drafters_by_variable_need_a_mode_that_may_load_one(mode: str, count: int) -> None:
    policy = f'[speculation.s]\nmode = "{mode}"\n{MODEL}speculation = "s"\n'
    assert len(read(policy + environment(*DRAFTER_VARIABLES)).warnings) == count
    own = 'engine_args = ["--spec-type=draft-simple"]\n'
    assert read(policy + own + environment(*DRAFTER_VARIABLES)).warnings == []


@pytest.mark.parametrize(("api_key", "count"), [("true", 1), ("false", 0)])
def test_a_key_by_variable_counts_where_processes_get_none(api_key: str, count: int) -> None:
    engine = f"[engines.default]\napi_key = {api_key}\n"
    assert len(read(engine + MODEL + environment(ENGINE_KEY)).warnings) == count


def test_what_is_told_is_what_the_child_does_without() -> None:
    names = ("LLAMA_ARG_SPEC_TYPE", "LLAMA_ARG_THREADS", *PLACEMENT_VARIABLES)
    request = read_model(MANUAL + environment(*names, "LLAMA_ARG_CTX_CHECKPOINTS")).request()
    env = child_environment(request, {}, LibraryPath(), ())
    assert {name for name in env if name.startswith("LLAMA_ARG_")} == {"LLAMA_ARG_CTX_CHECKPOINTS"}
