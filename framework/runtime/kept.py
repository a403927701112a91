"""A process that goes on when this manager ends, and one that an earlier manager left behind (07 §8.7).

Not tied to our life, its output in a file. Its exit is seen through its process id: a later manager is not
its parent, and so never learns the exit code. Called by runtime.launch; the other kind is runtime.child.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import psutil

from framework.engines.tether import untied
from framework.runtime.child import READER_WAIT_S
from framework.runtime.logs import LineSplitter, LogBuffer
from framework.runtime.output_file import OutputFile, new_output
from framework.runtime.private import made_at
from framework.runtime.process import EngineProcess
from framework.runtime.process_identity import is_same, start_identity

log = logging.getLogger(__name__)

# While it prints its lines are shown at once; later nobody waits for the next one so closely.
BUSY_POLL_S, QUIET_POLL_S = 0.05, 0.25
QUIET_AFTER_POLLS = 40
# Where the kernel does not tell of an exit.
EXIT_POLL_S = 0.5
# Longer than it takes to read what is left, shorter than anybody notices.
LAST_WORDS_S = 0.25


class Kept(EngineProcess):
    """Ours, or of an earlier life of this manager: the rest of the runtime need not know."""

    is_kept: ClassVar[bool] = True

    def __init__(
        self,
        pid: int,
        identity: str,
        log: LogBuffer,
        output: OutputFile | None,
        watch: _ExitWatch,
        *,
        is_of_another_life: bool = False,
    ) -> None:
        super().__init__(pid)
        self._identity = identity
        self._is_of_another_life = is_of_another_life
        self._log = log
        self._output = output
        self._watch_for = watch
        self._no_more = asyncio.Event()
        self._tail = asyncio.create_task(self._read(), name=f"reader of {pid}")
        self._watcher = asyncio.create_task(self._watch(), name=f"watcher of {pid}")

    @classmethod
    async def spawn(
        cls, argv: Sequence[str], env: Mapping[str, str], *, log: LogBuffer, cwd: Path, output: Path
    ) -> Kept:
        """Start `argv` with exactly `env`, no input, in `cwd`, printing to `output`. Raises OSError when
        nothing can be started."""

        def start() -> tuple[subprocess.Popen[bytes], OutputFile]:
            with made_at(output):
                printed = new_output(output)
            try:
                read = OutputFile(output)
                try:
                    process = subprocess.Popen(
                        untied(list(argv)),
                        stdin=subprocess.DEVNULL,
                        stdout=printed,
                        stderr=subprocess.STDOUT,
                        env=dict(env),
                        cwd=cwd,
                        start_new_session=True,
                    )
                except BaseException:
                    read.close()
                    raise
                return process, read
            finally:
                os.close(printed)

        process, read = await asyncio.to_thread(start)
        return cls(process.pid, start_identity(process.pid), log, read, _OfChild(process))

    @classmethod
    def adopt(cls, pid: int, identity: str, *, log: LogBuffer, output: Path) -> Kept:
        """Go on with a process that was started by an earlier manager. One that has gone meanwhile has
        exited."""
        try:
            read = OutputFile(output, from_end=True)
        except OSError as error:
            read = None
            log.append(f"--- what this process prints cannot be read: {error.strerror or error} ---")
        return cls(pid, identity, log, read, _OfStranger(pid, identity), is_of_another_life=True)

    async def wait_output(self) -> None:
        """Wait up to 2 s until the output of an ended process has been read."""
        await asyncio.wait({self._tail}, timeout=READER_WAIT_S)

    async def close(self) -> None:
        """Take what is still in the file, then let it go."""
        self._no_more.set()
        await asyncio.wait({self._tail}, timeout=READER_WAIT_S)
        for task in (self._tail, self._watcher):
            task.cancel()
        await asyncio.wait({self._tail, self._watcher}, timeout=READER_WAIT_S)

    def _is_over_uncollected(self) -> bool:
        return self._watch_for.is_over()

    def _signal_group(self, number: signal.Signals | None) -> bool:
        # Once it and its group have gone, nothing keeps their number from somebody else's process.
        return is_same(self.pid, self._identity) != "other" and super()._signal_group(number)

    async def let_go(self) -> None:
        """Leave it to the next manager: nothing of ours holds it or looks at it any more."""
        await self.close()
        self._watch_for.forget()

    async def _watch(self) -> None:
        code = await self._watch_for.ended()
        # Its last words tell why.
        self._no_more.set()
        for _ in range(2):
            # A loop that was held up finds the time over before anything was read.
            await asyncio.wait({self._tail}, timeout=LAST_WORDS_S)
        self._note_exit(code)

    async def _read(self) -> None:
        """Lines as they come, until no more will come and all of them are read."""
        output, lines, quiet = self._output, LineSplitter(self._log), 0
        if output is None:
            return
        try:
            while True:
                is_over = self._no_more.is_set()
                chunk, dropped = await asyncio.to_thread(output.take)
                lines.feed(chunk)
                if dropped:
                    self._log.append(f"... {dropped} bytes dropped: more than can be read")
                if chunk or dropped:
                    quiet = 0
                    continue
                if is_over:
                    break
                if self._is_of_another_life:
                    # What it said before is no trouble of this life.
                    self._is_of_another_life = False
                    self._log.shrink()
                quiet += 1
                await self._pause(QUIET_POLL_S if quiet > QUIET_AFTER_POLLS else BUSY_POLL_S)
        except OSError as error:
            self._log.append(f"--- what this process prints cannot be read: {error.strerror} ---")
        finally:
            lines.end()
            await asyncio.to_thread(output.close)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._no_more.wait(), seconds)


class _ExitWatch:
    """Sees the exit of one process. `pidfd` is None where the kernel has no such thing."""

    def __init__(self, pid: int, has_ended: Callable[[], bool]) -> None:
        self._has_ended = has_ended
        self._pidfd: int | None = None
        with contextlib.suppress(OSError, AttributeError):
            self._pidfd = os.pidfd_open(pid)

    async def ended(self) -> int | None:
        """Wait for the exit; the exit code, where it can be known."""
        try:
            await self._wait()
        finally:
            if self._pidfd is not None:
                os.close(self._pidfd)
                self._pidfd = None
        return self._code()

    def is_over(self) -> bool:
        """Whether it has ended by now. Asks the system, and costs next to nothing where the kernel tells."""
        if self._pidfd is None:
            return self._has_ended()
        look = select.poll()
        look.register(self._pidfd, select.POLLIN)
        return bool(look.poll(0))

    def forget(self) -> None:
        """Nobody waits for it any more."""

    def _code(self) -> int | None:
        return None

    async def _wait(self) -> None:
        if self._pidfd is None:
            while not await asyncio.to_thread(self._has_ended):
                await asyncio.sleep(EXIT_POLL_S)
            return
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._pidfd, over.set)
        try:
            await over.wait()
        finally:
            loop.remove_reader(self._pidfd)


class _OfChild(_ExitWatch):
    """Of a process that we started."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(process.pid, lambda: process.poll() is not None)
        self._process = process

    def _code(self) -> int | None:
        return self._process.wait()

    def forget(self) -> None:
        # It is nobody's child soon: nothing waits for it, and nothing warns that nobody did.
        if self._process.poll() is None:
            self._process.returncode = 0


class _OfStranger(_ExitWatch):
    """Of a process that somebody else started, who it is being proven once more now that we hold on to it."""

    def __init__(self, pid: int, identity: str) -> None:
        super().__init__(pid, lambda: not _is_running(pid, identity))
        self._is_gone = not _is_running(pid, identity)

    def is_over(self) -> bool:
        return self._is_gone or super().is_over()

    async def _wait(self) -> None:
        if not self._is_gone:
            await super()._wait()


def _is_running(pid: int, identity: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return is_same(pid, identity) == "same"
    return False
