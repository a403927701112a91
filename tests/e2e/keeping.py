"""What the tests of engines that outlive `paddock up` look at: records, processes, strangers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.support.paddock import RunningPaddock

KEEP = 'on_exit = "keep"'
STOP = 'on_exit = "stop"'


def record_path(paddock: RunningPaddock, name: str = "a.0@1") -> Path:
    return paddock.state_dir / "instances" / f"{name}.json"


def record_of(paddock: RunningPaddock, name: str = "a.0@1") -> dict[str, Any]:
    record: dict[str, Any] = json.loads(record_path(paddock, name).read_bytes())
    return record


def change_record(paddock: RunningPaddock, **fields: Any) -> None:
    record_path(paddock).write_text(json.dumps({**record_of(paddock), **fields}))


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def identity_of(pid: int) -> str:
    return "proc:" + Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def wait_committed(paddock: RunningPaddock, name: str = "a.0@1") -> None:
    paddock.wait(lambda: record_of(paddock, name)["committed"], 20, "the record to be complete")


def events_of_this_life(paddock: RunningPaddock, kind: str) -> list[dict[str, Any]]:
    """What was told since the last start of `paddock up`."""
    begun = paddock.events(kind="manager")[-1]["id"]
    return [event for event in paddock.events(kind=kind) if event["id"] > begun]


@contextmanager
def stranger(*command: str, **environment: str) -> Iterator[int]:
    """A process that somebody started and left: its parent is gone."""
    script = (
        "import os, subprocess, sys; "
        "print(subprocess.Popen(sys.argv[1:], start_new_session=True, stdin=subprocess.DEVNULL, "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid)"
    )
    started = subprocess.run(
        [sys.executable, "-c", script, *command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    pid = int(started.stdout)
    try:
        yield pid
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
