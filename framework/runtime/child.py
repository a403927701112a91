"""One child process in its own process group, tied to our life, its output in a log buffer (06 §8).

Called by runtime.ladder and runtime.replica. Knows nothing of models or HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from framework.engines.tether import tethered
from framework.runtime.logs import LINE_LIMIT, LogBuffer

READ_SIZE = 64 * 1024
# 07 §5.2: long enough for a server that finishes its batch, short enough for a person who waits.
TERMINATE_WAIT_S = 5.0
# 15 §8: with a request open a first SIGTERM is never enough, a second one ends the server at once.
SECOND_TERMINATE_S = 2.0
KILL_WAIT_S = 5.0
# A grandchild may hold the pipe open for ever; the reader waits this long for what is still in it.
READER_WAIT_S = 2.0
GONE_POLL_S = 0.05
# Longer than it takes to read a full pipe, shorter than anybody notices.
LAST_WORDS_S = 0.25


@dataclass(frozen=True)
class Ended:
    """How a process was ended: the signals sent, in order, and group members that would not go."""

    signals: tuple[str, ...]
    survivors: tuple[int, ...]


class Child:
    """A started process. `exited` is done with the exit code (negative: signal) as soon as it is seen."""

    def __init__(self, process: asyncio.subprocess.Process, log: LogBuffer) -> None:
        self.pid = process.pid
        self.started = time.monotonic()
        self._process = process
        self._log = log
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read(), name=f"reader of {self.pid}")
        self._watcher = asyncio.create_task(self._watch(), name=f"watcher of {self.pid}")

    @classmethod
    async def spawn(cls, argv: Sequence[str], env: Mapping[str, str], *, log: LogBuffer, cwd: Path) -> Child:
        """Start `argv` with exactly `env`, no input, in `cwd`. Raises OSError when nothing can be started.

        To be called from the main thread: the parent-death signal follows the thread that forks.
        """
        process = await asyncio.create_subprocess_exec(
            *tethered(list(argv)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
        return cls(process, log)

    @property
    def alive(self) -> bool:
        """Whether the exit has not been seen yet."""
        return not self.exited.done()

    def group_members(self) -> tuple[int, ...]:
        """Living processes of the group, the child's helpers included; zombies do not count."""
        if not self._signal_group(None):
            return ()
        members = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if os.getpgid(process.pid) == self.pid and process.status() != psutil.STATUS_ZOMBIE:
                    members.append(process.pid)
        return tuple(members)

    def signal_kill(self) -> None:
        """SIGKILL to the whole group, without waiting."""
        self._signal_group(signal.SIGKILL)

    def give_up(self) -> None:
        """SIGKILL to the whole group; what outlives it for 5 s is over for all but the ledger (07 §5.4)."""
        self.signal_kill()
        asyncio.get_running_loop().call_later(KILL_WAIT_S, self._note_exit, -signal.SIGKILL)

    async def terminate(self) -> Ended:
        """SIGTERM, again after 2 s, SIGKILL after 5 s; then whatever is left of the group (07 §5.2).

        A stopped process would not see the first: it is told to go on.
        """
        signals = []
        for name, wait_s in (
            ("SIGTERM", SECOND_TERMINATE_S),
            ("SIGTERM", TERMINATE_WAIT_S - SECOND_TERMINATE_S),
        ):
            if self._signal_group(signal.Signals[name]):
                signals.append(name)
                self._signal_group(signal.SIGCONT)
            if await self._wait_exit(wait_s):
                break
        members = await asyncio.to_thread(self.group_members)
        ended = await self.kill() if self.alive or members else Ended((), ())
        return Ended((*signals, *ended.signals), ended.survivors)

    async def kill(self) -> Ended:
        """SIGKILL to the whole group; waits up to 5 s for it to be gone."""
        self._signal_group(signal.SIGKILL)
        await self._wait_exit(KILL_WAIT_S)
        deadline = time.monotonic() + KILL_WAIT_S
        while (members := await asyncio.to_thread(self.group_members)) and time.monotonic() < deadline:
            self._signal_group(signal.SIGKILL)
            await asyncio.sleep(GONE_POLL_S)
        return Ended(("SIGKILL",), members)

    async def close(self) -> None:
        """After the end: take what is still in the pipe, then let it go. Never raises."""
        await asyncio.wait({self._reader}, timeout=READER_WAIT_S)
        self._reader.cancel()
        await asyncio.wait({self._reader})

    async def wait_output(self) -> None:
        """Wait up to 2 s until the output of an ended process has been read."""
        await asyncio.wait({self._reader}, timeout=READER_WAIT_S)

    def _signal_group(self, number: signal.Signals | None) -> bool:
        """Whether there was anybody to get the signal; None only asks."""
        try:
            os.killpg(self.pid, number or 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return False
        return True

    async def _wait_exit(self, timeout_s: float) -> bool:
        await asyncio.wait({self.exited}, timeout=timeout_s)
        return self.exited.done()

    async def _watch(self) -> None:
        code = await self._process.wait()
        # Its last words tell why; they are in the pipe already, unless a process of its own keeps that open.
        await asyncio.wait({self._reader}, timeout=LAST_WORDS_S)
        self._note_exit(code)

    def _note_exit(self, code: int) -> None:
        if not self.exited.done():
            self.exited.set_result(code)

    async def _read(self) -> None:
        """Split output into lines for ever; a line without an end is cut, never collected (06 §8.4)."""
        stream = self._process.stdout
        if stream is None:
            return
        rest = b""
        while chunk := await stream.read(READ_SIZE):
            *lines, rest = (rest + chunk).split(b"\n")
            self._log.extend([line.decode(errors="replace") for line in lines])
            if len(rest) > LINE_LIMIT:
                self._log.append(rest.decode(errors="replace"))
                rest = b""
            # A flood must not keep everybody else from their turn.
            await asyncio.sleep(0)
        if rest:
            self._log.append(rest.decode(errors="replace"))
