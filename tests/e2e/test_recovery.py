"""Starts that break under `paddock up`: what is tried, what is told, and what is left (06 §12, §14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import chat, engine_table, error_of, model_table
from tests.runtime.conftest import alive
from tests.support.model_files import write_tiny_gguf
from tests.support.paddock import RunningPaddock

START_S = 180.0
# S, B or A, R2, R4, R2: what may help an engine that breaks without a word, and has nothing to see with.
MOST_ATTEMPTS = 5


def rungs(paddock: RunningPaddock) -> list[str]:
    return [event["data"]["rung"] for event in paddock.events(kind="attempt")]


def told(paddock: RunningPaddock) -> dict[str, str]:
    """Sentences of what was given up, by code."""
    events: list[dict[str, Any]] = paddock.events(kind="degraded")
    return {event["reason"]["code"]: event["reason"]["message"] for event in events}


def test_a_start_that_breaks_each_time_ends_failed_and_is_left_alone(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(faults=[{"exit_signal": "SIGSEGV", "stderr": ["E x: the last error of all"]}])
    paddock = paddock_up(engine_table(engine) + model_table("m", tiny_gguf))
    error = paddock.wait_state("m", "failed", START_S)["instances"][0]["last_error"]
    assert error["code"] == "start_failed"
    assert "the last error of all" in error["message"]
    attempts = rungs(paddock)
    assert 2 <= len(attempts) <= MOST_ATTEMPTS
    answer = chat(paddock, "m")
    assert error_of(answer)["code"] == "model_load_failed"
    assert rungs(paddock) == attempts
    assert paddock.pids() == {}
    assert alive(start["pid"] for start in engine.starts()) == []


@pytest.mark.engine
def test_a_model_that_the_build_does_not_know_fails_after_one_attempt(
    paddock_up: StartPaddock, tmp_path: Path
) -> None:
    model = write_tiny_gguf(tmp_path / "womba.gguf", architecture="womba")
    paddock = paddock_up(model_table("m", model))
    error = paddock.wait_state("m", "failed", START_S)["instances"][0]["last_error"]
    assert error["code"] == "unsupported_architecture"
    assert rungs(paddock) == ["S"]
    assert paddock.pids() == {}


@pytest.mark.engine
def test_arguments_that_break_drafting_do_not_cost_the_model(paddock_up: StartPaddock, smollm2: Path) -> None:
    paddock = paddock_up(model_table("m", smollm2, engine_args=["--spec-type", "draft-mtp"]))
    paddock.wait_state("m", "ready", START_S)
    assert rungs(paddock) == ["S", "R4"]
    assert "doesn't contain MTP layers" in told(paddock)["runtime_error"]
    assert chat(paddock, "m", max_tokens=4).status_code == 200


@pytest.mark.engine
def test_a_projector_that_is_none_costs_the_pictures_alone(paddock_up: StartPaddock, smollm2: Path) -> None:
    paddock = paddock_up(model_table("m", smollm2, engine_args=["--mmproj", str(smollm2)]))
    paddock.wait_state("m", "ready", START_S)
    assert rungs(paddock) == ["S", "R5"]
    assert "text only" in told(paddock)["projector_dropped"]
    assert chat(paddock, "m", max_tokens=4).status_code == 200
