"""Processes, command lines, attempts, exits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framework.dashboard.pages.process import attempt_list, command_line, exit_text, process_facts
from framework.runtime.attempts import OUTCOMES, RUNGS
from framework.values.instance import ExitInfo, InstanceView, State
from framework.values.plan import Attempt, Section
from tests.dashboard import samples


def starting(**changes: Any) -> InstanceView:
    """An instance whose process is up and not ready yet."""
    return samples.instance(samples.request(), State.STARTING, **changes)


def test_the_command_line_can_be_pasted_and_holds_no_secret() -> None:
    line = command_line("c", starting())
    assert line is not None
    assert "--port {port}" not in line.text
    assert "very-secret" not in line.text


def test_the_line_that_was_started_is_shown_and_not_the_one_that_was_planned() -> None:
    line = command_line("c", samples.instance(samples.request()))
    assert line is not None
    assert line.text == "/opt/llama.cpp/bin/llama-server --port 43117 --api-key '<redacted>'"


def test_after_a_failed_start_the_planned_line_is_shown() -> None:
    (instance,) = samples.failed().instances
    line = command_line("c", instance)
    assert line is not None
    assert "--ctx-size 4096" in line.text


def test_blanks_in_arguments_are_quoted() -> None:
    path = Section("model", ("--model", "/my models/a.gguf"))
    line = command_line("c", starting(plan=samples.plan(samples.request(), sections=(path,))))
    assert line is not None
    assert line.text.endswith("--model '/my models/a.gguf'")


def test_only_variables_that_were_set_for_it_are_named() -> None:
    asked = samples.request(env={"OMP_NUM_THREADS": "4"})
    env = {"LD_LIBRARY_PATH": "/opt", "OMP_NUM_THREADS": "4", "HOME": "/home/op"}
    line = command_line("c", samples.instance(asked, plan=samples.plan(asked, env=env)))
    assert line is not None
    assert line.variables == ("LD_LIBRARY_PATH", "OMP_NUM_THREADS")


def test_without_a_plan_there_is_no_command_line() -> None:
    assert command_line("c", samples.instance(samples.request(), State.FETCHING)) is None


def test_an_exit_says_whether_it_was_meant() -> None:
    info = ExitInfo(code=-9, hard=True, planned=False, seconds_ready=12.4)
    assert exit_text(info) == "signal 9 (SIGKILL), unexpectedly, after 12 s ready"


def test_no_exit_is_no_text() -> None:
    assert process_facts("p", samples.instance(samples.request())).last_exit == ""


@pytest.mark.parametrize("rung", RUNGS)
def test_every_change_before_a_try_is_told_in_words(rung: str) -> None:
    (row,) = attempt_list("a", [Attempt(2, rung, ("x",), "healthy", None, 1.0, Path("/l"))]).rows
    assert row.change == RUNGS[rung]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_end_of_a_try_is_told_in_words(outcome: str) -> None:
    ended = Attempt(2, "S", ("x",), outcome, None, 1.0, Path("/l"))  # type: ignore[arg-type]
    (row,) = attempt_list("a", [ended]).rows
    assert row.outcome == OUTCOMES[outcome]


def test_an_attempt_says_what_was_changed_and_how_it_ended() -> None:
    attempt = Attempt(2, "P", ("llama-server", "--api-key", "x"), "exited", 1, 3.2, Path("/l"))
    (row,) = attempt_list("a", (attempt,)).rows
    assert (row.number, row.change) == (2, "on another port")
    assert (row.outcome, row.exit) == ("ended by itself", "exit code 1")
    assert row.command == "llama-server --api-key '<redacted>'"
