"""Run `paddock up` as the process that a user would start, and talk to it from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.support.waiting import unused_port, wait_until

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 40.0
HTTP_TIMEOUT_S = 30.0
COMMAND_TIMEOUT_S = 60.0
LOG_TAIL_CHARACTERS = 4000


@dataclass
class RunningPaddock:
    """One `paddock up`. Everything it prints lands in `log_path`."""

    process: subprocess.Popen[bytes]
    manifest: Path
    state_dir: Path
    port: int
    log_path: Path
    environment: Mapping[str, str] = field(repr=False)
    wrapper: tuple[str, ...] = ()
    """What it is run behind: a command that becomes the command that follows it."""
    seen: dict[int, psutil.Process] = field(default_factory=dict, repr=False)

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT`, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def token(self) -> str:
        """The operator's token of this run (13 §8)."""
        return (self.state_dir / "token").read_text(encoding="utf-8").strip()

    def api(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """A request to `/api/v1` + `path` with the token; the answer is returned whatever its status."""
        headers = {"Authorization": f"Bearer {self.token}"}
        with httpx.Client(base_url=self.base_url, timeout=HTTP_TIMEOUT_S, trust_env=False) as client:
            return client.request(method, f"/api/v1{path}", headers=headers, **arguments)

    def status(self) -> dict[str, Any]:
        """`GET /api/v1/status` (13 §5)."""
        response = self.api("GET", "/status")
        assert response.status_code == httpx.codes.OK, response.text
        self._remember_children()
        answer: dict[str, Any] = response.json()
        return answer

    def model(self, name: str) -> dict[str, Any]:
        """The entry of one model in the status."""
        return next(model for model in self.status()["models"] if model["name"] == name)

    def pids(self) -> dict[str, list[int]]:
        """Process ids of the instances, by model; models without a process are left out."""
        found: dict[str, list[int]] = {}
        for model in self.status()["models"]:
            if pids := [entry["pid"] for entry in model["instances"] if entry["pid"] is not None]:
                found[model["name"]] = pids
        return found

    def wait_replaced(self, name: str, pid: int, timeout_s: float = 60.0) -> int:
        """Wait until another process than `pid` is the only one of a model; its process id."""

        def only() -> int | None:
            pids = self.pids().get(name, [])
            return pids[0] if len(pids) == 1 and pids[0] != pid else None

        found: int = self.wait(only, timeout_s, f"{name} to be replaced")
        self.wait_state(name, "ready")
        return found

    def events(self, **query: Any) -> list[dict[str, Any]]:
        """`GET /api/v1/events` (13 §6), oldest first."""
        answer = self.api("GET", "/events", params=query).json()
        events: list[dict[str, Any]] = answer["events"] if isinstance(answer, dict) else answer
        return events

    def wait_state(self, name: str, state: str, timeout_s: float = 60.0) -> dict[str, Any]:
        """Wait until a model is in `state`; returns its status entry."""

        def reached() -> dict[str, Any] | None:
            entry = next((model for model in self.status()["models"] if model["name"] == name), None)
            return entry if entry and entry["state"] == state else None

        entry: dict[str, Any] = self.wait(reached, timeout_s, f"{name} to be {state}")
        return entry

    def wait_ready(self) -> None:
        """Until the status route answers. Fails at once when the process has ended."""
        self.wait(self._answers, READY_TIMEOUT_S, "paddock to answer")

    def wait(self, predicate: Callable[[], Any], timeout_s: float, what: str) -> Any:
        """As `wait_until`, and a failure shows the log."""
        try:
            return wait_until(predicate, timeout_s, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log_tail()}") from None

    def edit(self, old: str, new: str) -> None:
        """Replace a text that occurs once in the manifest, as an editor that renames over the file does."""
        text = self.manifest.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        self.write(text.replace(old, new))

    def write(self, text: str) -> None:
        """Give the manifest this content, in one step."""
        draft = self.manifest.with_name(f".{self.manifest.name}.draft")
        draft.write_text(text, encoding="utf-8")
        draft.replace(self.manifest)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another `paddock` command beside the server, on its manifest."""
        return run_command(*arguments, "--manifest", str(self.manifest), environment=self.environment)

    def log_text(self) -> str:
        """Everything that was printed so far."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def log_tail(self) -> str:
        """The end of the log, for failure messages."""
        return f"--- end of the log of `paddock up`\n{self.log_text()[-LOG_TAIL_CHARACTERS:]}"

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """End it as Ctrl-C does and return its exit status. A second call returns the same."""
        self._remember_children()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL, without a chance to clean up."""
        self._remember_children()
        self.process.kill()
        self.process.wait(STOP_TIMEOUT_S)

    def restart(self) -> None:
        """Run `paddock up` again, after `stop` or `kill`, with the same manifest, port and state."""
        assert self.process.poll() is not None, "stop it first"
        self.process = spawn_up(self.manifest, self.log_path, self.environment, self.wrapper)
        self.wait_ready()

    def survivors(self) -> list[int]:
        """Children that were seen and still run."""
        return [child.pid for child in self.seen.values() if child.is_running() and not is_zombie(child)]

    def close(self) -> None:
        """Whatever a test left behind: end it by its process id."""
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.kill()
        for pid in self.survivors():
            os.kill(pid, signal.SIGKILL)

    def _answers(self) -> bool:
        status = self.process.poll()
        assert status is None, f"paddock up ended with status {status}"
        try:
            return self.api("GET", "/status").status_code == httpx.codes.OK
        except (OSError, httpx.TransportError):
            return False

    def _remember_children(self) -> None:
        try:
            children = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return
        self.seen.update({child.pid: child for child in children})


def is_zombie(process: psutil.Process) -> bool:
    """Whether a process has ended and only waits to be collected."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def run_command(*arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """`paddock ARGUMENTS` to its end, with its output as text."""
    return subprocess.run(
        [sys.executable, "-m", "framework", *arguments],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )


def start_paddock(
    folder: Path,
    tables: str,
    environment: Mapping[str, str],
    *,
    server: str = "",
    wait: bool = True,
) -> RunningPaddock:
    """Write a manifest and run `paddock up` on it, on a free port.

    `tables` is everything but `[server]`, of which `server` holds further lines. With `wait` the call returns
    when the status route answers; without it the process may still be starting, or may have failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = unused_port()
    manifest = folder / "serve.toml"
    manifest.write_text(f'[server]\nlisten = "127.0.0.1:{port}"\n{server}\n{tables}', encoding="utf-8")
    log_path = folder / "paddock.log"
    process = spawn_up(manifest, log_path, environment)
    state_dir = Path(environment["PADDOCK_STATE_DIR"])
    running = RunningPaddock(process, manifest, state_dir, port, log_path, environment)
    if wait:
        try:
            running.wait_ready()
        except AssertionError:
            running.close()
            raise
    return running


def spawn_up(
    manifest: Path, log_path: Path, environment: Mapping[str, str], wrapper: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """`paddock up` in a session of its own, its output appended to a file."""
    with log_path.open("ab") as log:
        return subprocess.Popen(
            [*wrapper, sys.executable, "-m", "framework", "up", "--manifest", str(manifest)],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
