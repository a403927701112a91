"""The command line as a whole: help, usage errors, exit codes, faults, and that it starts quickly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from framework import __version__, cli
from framework.commands.failure import CommandFailed
from tests.commands.conftest import Paddock, Running

# They are about a file, not about a manifest.
WITHOUT_MANIFEST = {"inspect", "key"}


def in_a_process(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command as a user runs it."""
    root = str(Path(cli.__file__).resolve().parent.parent)
    return subprocess.run(
        [sys.executable, "-m", "framework", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": root, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_names_every_command(paddock: Paddock) -> None:
    ended = paddock("--help")
    assert ended.code == 0
    for name in cli.COMMANDS:
        assert f"  {name} " in ended.out


def test_nothing_asked_shows_the_help_and_ends_with_2(paddock: Paddock) -> None:
    ended = paddock()
    assert ended.code == 2
    assert "Commands:" in ended.out


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_explains_itself(paddock: Paddock, name: str) -> None:
    ended = paddock(name, "--help")
    assert ended.code == 0
    assert f"Usage: paddock {name}" in ended.out
    assert ("--manifest" in ended.out) == (name not in WITHOUT_MANIFEST)


def test_commands_that_print_facts_have_json(paddock: Paddock) -> None:
    without = {name for name in cli.COMMANDS if "--json" not in paddock(name, "--help").out}
    assert without == {"up", "logs"}


@pytest.mark.parametrize("arguments", [("-h",), ("help",)], ids=" ".join)
def test_help_may_be_asked_for_in_other_ways(paddock: Paddock, arguments: tuple[str, ...]) -> None:
    assert paddock(*arguments) == paddock("--help")


@pytest.mark.parametrize("arguments", [("check", "-h"), ("help", "check")], ids=" ".join)
def test_help_of_a_command_too(paddock: Paddock, arguments: tuple[str, ...]) -> None:
    assert paddock(*arguments) == paddock("check", "--help")


def test_version_is_printed(paddock: Paddock) -> None:
    assert paddock("--version").out == f"paddock {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("statsu",), "status", id="misspelt-command"),
        pytest.param(("frobnicate",), "frobnicate", id="unknown-command"),
        pytest.param(("check", "--manifst", "x"), "--manifest", id="misspelt-option"),
        pytest.param(("load",), "MODEL", id="missing-argument"),
        pytest.param(("logs", "m", "-n", "many"), "--lines: found 'many'", id="wrong-type"),
        pytest.param(("logs", "m", "--replica", "-1"), "from 0 to 999", id="negative"),
        pytest.param(("events", "-n", "0"), "a whole number from 1 to 1,000", id="out-of-range"),
        pytest.param(("events", "-n", "1" * 5000), "from 1 to 1,000", id="endless-number"),
        pytest.param(("unload", "m", "--mode", "x"), "allowed is drain, now, kill", id="unknown-word"),
        pytest.param(("check", "--manifest", ""), "--manifest: found ''", id="empty-path"),
        pytest.param(("status", "--url", ""), "--url: found ''", id="empty-address"),
        pytest.param(("load", "\udcff"), "text in UTF-8", id="name-that-is-no-text"),
        pytest.param(("plan", "\udcff"), "text in UTF-8", id="planned-name-that-is-no-text"),
        pytest.param(("events", "--model", "\udcff"), "text in UTF-8", id="filter-that-is-no-text"),
        pytest.param(("check", "extra"), "extra", id="too-many-arguments"),
        pytest.param(("check", "--manifest"), "--manifest", id="option-without-value"),
    ],
)
def test_bad_usage_ends_with_2_and_one_line(paddock: Paddock, arguments: tuple[str, ...], said: str) -> None:
    ended = paddock(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("paddock: ")
    assert ended.err.count("\n") == 1
    assert said in ended.err
    assert "Input should" not in ended.err
    assert "Value error" not in ended.err


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let the next command end with an exception."""

    def command() -> int:
        raise error

    from framework.commands import check

    monkeypatch.setattr(check, "command", command)


def test_interrupted_command_is_quiet(paddock: Paddock, monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, KeyboardInterrupt())
    ended = paddock("check")
    assert (ended.code, ended.out, ended.err) == (130, "", "")


def test_failure_has_its_code_and_remedy(paddock: Paddock, monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, CommandFailed(3, "Nobody there.", "Start it."))
    ended = paddock("check")
    assert (ended.code, ended.err) == (3, "paddock: Nobody there. Start it.\n")


def test_fault_of_ours_is_one_line(paddock: Paddock, monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, RuntimeError("a\nb\x1b"))
    ended = paddock("check")
    assert ended.code == 1
    assert ended.err.count("\n") == 1
    assert "PADDOCK_DEBUG" in ended.err


def test_fault_of_ours_shows_its_trace_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_DEBUG", "1")
    raising(monkeypatch, RuntimeError("trace me"))
    with pytest.raises(RuntimeError, match="trace me"):
        cli.run(["check"])


def test_reader_that_leaves_ends_the_command_quietly(place: Path) -> None:
    script = f"{sys.executable} -m framework check --schema | head -c 1; echo ${{PIPESTATUS[0]}}"
    root = str(Path(cli.__file__).resolve().parent.parent)
    ended = subprocess.run(
        ["bash", "-c", script],
        cwd=place,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr == ""
    assert ended.stdout.endswith("0\n")


def test_module_and_script_are_the_same(place: Path) -> None:
    ended = in_a_process("check", cwd=place)
    assert (ended.returncode, ended.stdout) == (0, "serve.toml: ok, 1 model\n")


def test_check_does_not_wait_for_what_a_server_needs(place: Path) -> None:
    code = "import sys; from framework.cli import run; run(['check']); print(*sorted(sys.modules))"
    root = str(Path(cli.__file__).resolve().parent.parent)
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=place,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = set(ended.stdout.splitlines()[-1].split())
    assert not {"aiohttp", "starlette", "uvicorn", "gguf", "numpy", "jinja2"} & loaded


def test_status_of_a_running_server_in_a_process(server: Running, place: Path) -> None:
    ended = in_a_process("status", "--json", cwd=place)
    assert ended.returncode == 0
    assert '"version": "1.2.3"' in ended.stdout


def test_port_that_is_taken_ends_up_with_1_and_one_line(server: Running, place: Path, tmp_path: Path) -> None:
    listen = f"127.0.0.1:{server.port}"
    ended = in_a_process("up", "--listen", listen, "--state-dir", str(tmp_path / "other"), cwd=place)
    assert ended.returncode == 1
    assert str(server.port) in ended.stderr
    assert "Traceback" not in ended.stderr


def test_up_with_a_broken_manifest_ends_with_2_and_one_line(place: Path) -> None:
    (place / "serve.toml").write_text("[models.tiny]\nsource = 'tiny.gguf'\nslotz = 4\n")
    ended = in_a_process("up", cwd=place)
    assert ended.returncode == 2
    assert ended.stderr.startswith("paddock: serve.toml:3:1: ")
    assert ended.stderr.count("\n") == 1


def test_bad_flag_is_named_by_its_name(place: Path) -> None:
    ended = in_a_process("up", "--listen", "x", cwd=place)
    assert ended.returncode == 2
    assert ended.stderr.startswith("paddock: --listen: server.listen must be host:port")
    assert "did you mean" not in ended.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        pytest.param("PADDOCK_KEY", "secret\udcff", id="key-that-is-no-text"),
        pytest.param("PADDOCK_KEY", "secret\nX: y", id="key-with-a-line-end"),
        pytest.param("PADDOCK_URL", "\udcff", id="address-that-is-no-text"),
        pytest.param("PADDOCK_URL", "http://a..b:1", id="name-with-an-empty-part"),
        pytest.param("PADDOCK_URL", "http://a b:1", id="name-with-a-blank"),
    ],
)
def test_variable_that_no_request_can_carry_ends_with_2(
    paddock: Paddock, place: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    ended = paddock("status")
    assert ended.code == 2
    assert ended.err.startswith(f"paddock: {variable}: ")
    assert ended.err.count("\n") == 1
    assert "secret" not in ended.err


def test_bad_variable_ends_with_2(paddock: Paddock, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_MAX_WAITING", "many")
    ended: Any = paddock("plan")
    assert ended.code == 2
    assert "max_waiting" in ended.err
