"""One child process in its own process group, tied to our life, its output in a log buffer (06 §8).

Called by runtime.launch. The other kind is runtime.kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from framework.engines.tether import tethered
from framework.runtime.logs import LineSplitter, LogBuffer
from framework.runtime.process import EngineProcess

READ_SIZE = 64 * 1024
# A grandchild may hold the pipe open for ever; the reader waits this long for what is still in it.
READER_WAIT_S = 2.0
# Nothing more is read for so long, twice: a loop that was held up finds the time over before it has read.
SILENT_S = 0.1


class Child(EngineProcess):
    """A process that dies with us and prints into a pipe of ours."""

    is_kept: ClassVar[bool] = False

    def __init__(self, process: asyncio.subprocess.Process, log: LogBuffer) -> None:
        super().__init__(process.pid)
        self._process = process
        self._lines = LineSplitter(log)
        self._chunks = 0
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

    async def close(self) -> None:
        """Take what is still in the pipe, then let it go."""
        await asyncio.wait({self._reader}, timeout=READER_WAIT_S)
        self._reader.cancel()
        await asyncio.wait({self._reader})

    async def wait_output(self) -> None:
        """Wait up to 2 s until the output of an ended process has been read."""
        await asyncio.wait({self._reader}, timeout=READER_WAIT_S)

    async def _watch(self) -> None:
        code = await self._process.wait()
        # Its last words tell why; they are in the pipe already, unless a process of its own keeps that open.
        await self._until_silent()
        self._note_exit(code)

    async def _until_silent(self) -> None:
        clock = asyncio.get_running_loop().time
        silent, deadline_s = 0, clock() + READER_WAIT_S
        while silent < 2 and not self._reader.done():
            before = self._chunks
            await asyncio.wait({self._reader}, timeout=SILENT_S)
            silent = silent + 1 if self._chunks == before else 0
            if not silent and clock() > deadline_s:
                return

    async def _read(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        while chunk := await stream.read(READ_SIZE):
            self._lines.feed(chunk)
            self._chunks += 1
            # A flood must not keep everybody else from their turn.
            await asyncio.sleep(0)
        self._lines.end()
