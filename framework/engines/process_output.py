"""Run a binary for an answer: bounded time, bounded output, nothing left behind.

Used for `--help`, `--version` and `--list-devices`, and by dry_run, which reads while the process runs. Such
a process may hold a device context, so it gets its own process group, the whole group is killed when the time
is up or the caller is cancelled, and the system kills it when the manager itself is killed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from framework.engines.tether import CANNOT_EXECUTE, CANNOT_RUN, NOT_FOUND, tethered

# The longest real help text is some 60 kB; whatever prints more is not answering.
OUTPUT_LIMIT_BYTES = 2**20
# A killed process is gone at once, unless a driver call holds it; then waiting longer does not help either.
REAP_S = 2.0
STDOUT, STDERR = 1, 2

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProcessOutput:
    """What a process answered. `exit_code` is None when it did not start or did not end by itself."""

    exit_code: int | None
    stdout: str = ""
    stderr: str = ""
    fault: str = ""
    """Why there is no exit code, as a clause: "did not end within 10 s"."""


class Watcher(asyncio.SubprocessProtocol):
    """Sees a process through. `done` is set when it ended, or when nothing more is wanted of it."""

    def __init__(self) -> None:
        self.done = asyncio.Event()
        self.exited = asyncio.Event()
        self.closed = False

    def process_exited(self) -> None:
        """Called by the event loop."""
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop when it has ended and all it said has been read."""
        self.closed = True
        self.done.set()


class _Collector(Watcher):
    """Keeps the first bytes of both pipes; more than enough of them is enough."""

    def __init__(self) -> None:
        super().__init__()
        self.data = {STDOUT: bytearray(), STDERR: bytearray()}
        self.overflow = False

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        room = OUTPUT_LIMIT_BYTES - len(self.data[fd])
        self.data[fd] += data[:room]
        if len(data) > room:
            self.overflow = True
            self.done.set()

    def text(self, fd: int) -> str:
        return self.data[fd].decode("utf-8", "replace")


async def process_output(argv: Sequence[str], env: Mapping[str, str], *, timeout_s: float) -> ProcessOutput:
    """Run `argv` with exactly `env` and wait for its end, at most `timeout_s` seconds.

    Never raises for a process that cannot be started or misbehaves. Cancelling it kills the process group
    before the cancellation goes on.
    """
    collector = _Collector()
    code, fault = await watch(collector, argv, env, timeout_s=timeout_s)
    if collector.overflow:
        code, fault = None, f"printed more than {OUTPUT_LIMIT_BYTES} bytes"
    stderr = collector.text(STDERR)
    if code in (CANNOT_RUN, NOT_FOUND) and stderr.startswith(CANNOT_EXECUTE):
        return ProcessOutput(None, fault=f"could not be started: {stderr.rpartition(': ')[2].strip()}")
    return ProcessOutput(code, collector.text(STDOUT), stderr, fault)


async def watch(
    watcher: Watcher,
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    timeout_s: float,
    cwd: str | None = None,
) -> tuple[int | None, str]:
    """Run `argv` until the watcher is done, at most `timeout_s` seconds, then kill what is left of it.

    Returns its exit code, None when it did not start or had to be killed for time, and why as a clause.
    Killed once the watcher was done, it has the code of the signal. As `process_output` otherwise.
    """
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.subprocess_exec(
            lambda: watcher,
            *tethered(list(argv)),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return None, f"could not be started: {_cause(error)}"
    fault = ""
    try:
        async with asyncio.timeout(timeout_s):
            await watcher.done.wait()
    except TimeoutError:
        fault = f"did not end within {timeout_s:g} s"
    finally:
        await _end(transport, watcher)
    return (None if fault else transport.get_returncode()), fault


async def _end(transport: asyncio.SubprocessTransport, watcher: Watcher) -> None:
    """Unless it ended in order, kill the whole group, descendants that hold the pipes included."""
    try:
        if not watcher.closed:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(transport.get_pid(), signal.SIGKILL)
        async with asyncio.timeout(REAP_S):
            await watcher.exited.wait()
    except TimeoutError:
        log.warning("process %d does not end after SIGKILL; it is left to the system", transport.get_pid())
    finally:
        transport.close()


def _cause(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
