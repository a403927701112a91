"""Run a binary for an answer: bounded time, bounded output, nothing left behind.

Used for `--help`, `--version` and `--list-devices`. Such a process may hold a device context, so it gets
its own process group, the whole group is killed when the time is up or the caller is cancelled, and the
system kills it when the manager itself is killed.
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


class _Collector(asyncio.SubprocessProtocol):
    """Keeps the first bytes of both pipes. `done` is set when the process ended or has said too much."""

    def __init__(self) -> None:
        self.data = {STDOUT: bytearray(), STDERR: bytearray()}
        self.done = asyncio.Event()
        self.exited = asyncio.Event()
        self.overflow = False
        self.closed = False

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        room = OUTPUT_LIMIT_BYTES - len(self.data[fd])
        self.data[fd] += data[:room]
        if len(data) > room:
            self.overflow = True
            self.done.set()

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self.done.set()

    def text(self, fd: int) -> str:
        return self.data[fd].decode("utf-8", "replace")


async def process_output(argv: Sequence[str], env: Mapping[str, str], *, timeout_s: float) -> ProcessOutput:
    """Run `argv` with exactly `env` and wait for its end, at most `timeout_s` seconds.

    Never raises for a process that cannot be started or misbehaves. Cancelling it kills the process group
    before the cancellation goes on.
    """
    loop = asyncio.get_running_loop()
    try:
        transport, collector = await loop.subprocess_exec(
            _Collector,
            *tethered(list(argv)),
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return ProcessOutput(None, fault=f"could not be started: {_cause(error)}")
    fault = ""
    try:
        async with asyncio.timeout(timeout_s):
            await collector.done.wait()
        if collector.overflow:
            fault = f"printed more than {OUTPUT_LIMIT_BYTES} bytes"
    except TimeoutError:
        fault = f"did not end within {timeout_s:g} s"
    finally:
        await _end(transport, collector)
    code = None if fault else transport.get_returncode()
    stderr = collector.text(STDERR)
    if code in (CANNOT_RUN, NOT_FOUND) and stderr.startswith(CANNOT_EXECUTE):
        return ProcessOutput(None, fault=f"could not be started: {stderr.rpartition(': ')[2].strip()}")
    return ProcessOutput(code, collector.text(STDOUT), stderr, fault)


async def _end(transport: asyncio.SubprocessTransport, collector: _Collector) -> None:
    """Unless it ended in order, kill the whole group, descendants that hold the pipes included."""
    try:
        if not collector.closed:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(transport.get_pid(), signal.SIGKILL)
        async with asyncio.timeout(REAP_S):
            await collector.exited.wait()
    except TimeoutError:
        log.warning("process %d does not end after SIGKILL; it is left to the system", transport.get_pid())
    finally:
        transport.close()


def _cause(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
