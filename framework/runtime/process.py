"""A running engine as the rest of the runtime sees it, and how its group of processes is ended (07 §5.2).

Two kinds: runtime.child, which dies with us, and runtime.kept, which goes on without us and may be of an
earlier life of this manager. Knows nothing of models or HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import psutil

# 07 §5.2: long enough for a server that finishes its batch, short enough for a person who waits.
TERMINATE_WAIT_S = 5.0
# 15 §8: with a request open a first SIGTERM is never enough, a second one ends the server at once.
SECOND_TERMINATE_S = 2.0
KILL_WAIT_S = 5.0
GONE_POLL_S = 0.05


@dataclass(frozen=True)
class Ended:
    """How a process was ended: the signals sent, in order, and group members that would not go."""

    signals: tuple[str, ...]
    survivors: tuple[int, ...]


class EngineProcess(ABC):
    """A process that leads a group of its own.

    `exited` is done as soon as its exit is seen, with the exit code (negative: signal), or with None where
    that is not known because the process is nobody's child of ours.
    """

    is_kept: ClassVar[bool]
    """Whether it goes on when this manager ends, however it ends."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.exited: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    @property
    def alive(self) -> bool:
        """Whether the exit has not been seen yet."""
        return not self.exited.done()

    def is_over(self) -> bool:
        """Whether it has ended by now, also where its exit has not been seen yet. Asks the system."""
        if not self.alive:
            return True
        try:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except AttributeError:
            # A system without this call: the exit is seen a moment later.
            return False
        except ChildProcessError:
            return self._is_over_uncollected()
        return ended is not None

    def _is_over_uncollected(self) -> bool:
        """The same of a process that is no child of ours, or not any more."""
        return True

    @abstractmethod
    async def wait_output(self) -> None:
        """Wait a moment until what an ended process has printed is in the log."""

    @abstractmethod
    async def close(self) -> None:
        """After the end: take what it still has said, then let go of everything. Never raises."""

    def group_members(self) -> tuple[int, ...]:
        """Living processes of the group, helpers included; zombies do not count."""
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

    def _signal_group(self, number: signal.Signals | None) -> bool:
        """Whether there was anybody to get the signal; None only asks."""
        try:
            os.killpg(self.pid, number or 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return False
        return True

    def _note_exit(self, code: int | None) -> None:
        """It has ended, or is given up: whichever is seen first."""
        if not self.exited.done():
            self.exited.set_result(code)

    async def _wait_exit(self, timeout_s: float) -> bool:
        await asyncio.wait({self.exited}, timeout=timeout_s)
        return self.exited.done()
