"""Processes, command lines, attempts, exits."""

from __future__ import annotations

import pytest

from framework.dashboard.pages.process import attempt_list, code_text, command_line, exit_text, process_facts
from framework.values.instance import ExitInfo, State
from framework.values.plan import Attempt, Section
from tests.dashboard import samples


def test_the_command_line_can_be_pasted_and_holds_no_secret() -> None:
    line = command_line("c", samples.instance(samples.request()))
    assert line is not None
    assert "--port 43117" in line.text
    assert "very-secret" not in line.text


def test_blanks_in_arguments_are_quoted() -> None:
    asked = samples.request()
    path = Section("model", ("--model", "/my models/a.gguf"))
    line = command_line("c", samples.instance(asked, plan=samples.plan(asked, sections=(path,))))
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


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0, "exit code 0"),
        (1, "exit code 1"),
        (-4, "signal 4 (SIGILL)"),
        (-99, "signal 99"),
        (None, "unknown exit code"),
    ],
)
def test_an_exit_code_is_read_out(code: int | None, text: str) -> None:
    assert code_text(code) == text


def test_an_exit_says_whether_it_was_meant() -> None:
    info = ExitInfo(code=-9, hard=True, planned=False, seconds_ready=12.4)
    assert exit_text(info) == "signal 9 (SIGKILL), unexpectedly, after 12 s ready"


def test_no_exit_is_no_text() -> None:
    assert process_facts("p", samples.instance(samples.request())).last_exit == ""


def test_an_attempt_says_what_was_changed_and_how_it_ended() -> None:
    attempt = Attempt(2, "P", ("llama-server", "--api-key", "x"), "exited", 1, 3.2, None)
    (row,) = attempt_list("a", (attempt,)).rows
    assert (row.number, row.change) == (2, "on another port")
    assert (row.outcome, row.exit) == ("ended by itself", "exit code 1")
    assert row.command == "llama-server --api-key '<redacted>'"
