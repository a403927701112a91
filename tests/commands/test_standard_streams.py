"""Commands whose standard streams are closed, broken or full, and signals that come early: real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from framework import cli
from tests.support.waiting import wait_until

ROOT = str(Path(cli.__file__).resolve().parent.parent)
UP_TIMEOUT_S = 20.0
# Stands in for a library that `paddock` imports: tells that imports have begun, and waits.
SLOW_LIBRARY = """
import sys
print("importing", flush=True)
sys.stdin.readline()
sys.exit(7)
"""


def environment(*before: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, before), ROOT])}


def shell(place: Path, script: str) -> subprocess.CompletedProcess[str]:
    """A script in which `paddock` is a command."""
    text = f'paddock() {{ "{sys.executable}" -m framework "$@"; }}\n{script}'
    return subprocess.run(
        ["bash", "-c", text],
        cwd=place,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def without_reader(place: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """A command whose answer nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            [sys.executable, "-m", "framework", *arguments],
            cwd=place,
            env=environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)


def answers(listen: Path) -> bool:
    """Whether the server whose address lies in a file takes requests, and signals."""
    try:
        return httpx.get(f"http://{listen.read_text()}/health", trust_env=False).is_success
    except (OSError, httpx.TransportError):
        return False


@pytest.fixture
def up(place: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts `paddock up` with the streams that it is given, until it serves; ends it after the test."""
    started = []

    def start(**streams: Any) -> subprocess.Popen[bytes]:
        arguments = [sys.executable, "-m", "framework", "up"]
        process = subprocess.Popen(arguments, cwd=place, env=environment(), **streams)
        started.append(process)
        wait_until(lambda: answers(place / "state" / "listen"), UP_TIMEOUT_S, "the server to answer")
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("check", "--schema"),
        ("check", "--json"),
        ("engines",),
        ("--help",),
    ],
    ids=" ".join,
)
def test_a_command_whose_reader_has_left_ends_as_it_would_have(
    place: Path, fake_engine: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    with (place / "serve.toml").open("a") as manifest:
        manifest.write(f'\n[engines.default]\nbinary = "{fake_engine().path}"\n')
    ended = without_reader(place, *arguments)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", [("check",), ("check", "--json")], ids=" ".join)
def test_a_reader_that_has_left_hides_no_failure(place: Path, arguments: tuple[str, ...]) -> None:
    (place / "serve.toml").write_text("x = 1")
    assert without_reader(place, *arguments).returncode == 2


def test_errors_that_nobody_reads_change_no_exit_code(place: Path) -> None:
    assert shell(place, "paddock plan --manifest gone.toml 2>/dev/full").returncode == 2


@pytest.mark.parametrize("arguments", ["check", "check --schema", "--help"])
def test_a_full_disk_is_one_sentence(place: Path, arguments: str) -> None:
    ended = shell(place, f"paddock {arguments} >/dev/full")
    assert ended.returncode == 1
    assert ended.stderr == "paddock: The output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_may_be_closed(place: Path, closed: str) -> None:
    ended = shell(place, f"paddock check {closed}")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_failure_keeps_its_code_without_a_place_to_tell_it(place: Path) -> None:
    assert shell(place, "paddock status 2>&-").returncode == 3


def test_up_goes_on_when_its_reader_leaves(place: Path, up: Callable[..., Any]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = up(stdout=writing, stderr=writing)
    os.close(writing)
    process.send_signal(signal.SIGHUP)
    (place / "serve.toml").write_text("# changed: log lines are written\n")
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(UP_TIMEOUT_S) == 0


def test_up_with_closed_streams_has_nothing_else_in_their_place(place: Path, up: Callable[..., Any]) -> None:
    def close_all() -> None:
        os.closerange(0, 3)

    process = up(preexec_fn=close_all)
    held = {number: str(Path(f"/proc/{process.pid}/fd/{number}").readlink()) for number in range(3)}
    assert held == dict.fromkeys(range(3), os.devnull)
    process.send_signal(signal.SIGINT)
    assert process.wait(UP_TIMEOUT_S) == 0


def importing(tmp_path: Path, command: str) -> subprocess.Popen[str]:
    """A command that is held in the middle of its imports until a line is written to it."""
    library = tmp_path / "slow"
    library.mkdir()
    (library / "typer.py").write_text(SLOW_LIBRARY)
    process = subprocess.Popen(
        [sys.executable, "-m", "framework", command],
        env=environment(library),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    return process


@pytest.mark.parametrize("command", ["up", "check"])
def test_an_interrupt_during_imports_is_quiet(tmp_path: Path, command: str) -> None:
    process = importing(tmp_path, command)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=UP_TIMEOUT_S)
    assert (process.returncode, told) == (130, "")


@pytest.mark.parametrize(
    ("command", "status"),
    [pytest.param("up", 7, id="up-goes-on"), pytest.param("check", -signal.SIGHUP, id="others-end")],
)
def test_a_reload_signal_during_imports_ends_no_server(tmp_path: Path, command: str, status: int) -> None:
    process = importing(tmp_path, command)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.1)
    if process.poll() is None:
        process.communicate("go on\n", timeout=UP_TIMEOUT_S)
    else:
        process.communicate()
    assert process.returncode == status


LOST = """
import signal, sys, time
from framework.__main__ import interrupt_again

sys.unraisablehook = interrupt_again

class Dying:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

try:
    Dying()
    time.sleep(60)
except KeyboardInterrupt:
    print("ended")
"""


def test_an_interrupt_where_nothing_can_be_raised_comes_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOST], env=environment(), capture_output=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"ended\n", b"")


# The first milliseconds belong to Python itself, which cannot be told how to end.
BEGUN = "import framework.__main__ as paddock; print(flush=True); paddock.main()"


@pytest.mark.parametrize("delay_s", [0.02, 0.2, 0.4, 0.7])
def test_an_interrupt_at_any_time_leaves_no_trace(place: Path, delay_s: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BEGUN, "doctor"],
        cwd=place,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=UP_TIMEOUT_S)
    assert process.returncode in (0, 1, 130)
    assert told == b""
