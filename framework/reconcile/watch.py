"""Notice that the manifest changed, wait until the writer is done, then reload once (01 §2.6).

Editors truncate and write, rename over, or swap a symbolic link; each yields exactly one reload. A half-
written file that is valid by accident must not remove models: a reload that takes a model away is believed
only when the files stay the same for a while longer.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from pathlib import Path

from watchfiles import awatch

from framework.models.regular_file import is_folder
from framework.reconcile.apply import Reconciler
from framework.values.plain_text import visible

log = logging.getLogger(__name__)

# 01 §2.6 allows 50-200 ms; an editor that renames over is done at once, one that writes in place within this.
SETTLE_S = 0.1
# A text that fails may be half of one; look again before anybody sees an error.
SECOND_LOOK_S = 0.15
# A slow writer was seen to pause for 0.4 s between two halves; removing models waits for twice that.
REMOVAL_SETTLE_S = 1.0
# A file that never comes to rest, such as one that a program writes all the time, must not hold up the rest.
LONGEST_SETTLE_S = 2.0
REMOVAL_LOOKS = 3
# How long a finding may be shown after what it is about has been put right.
RECHECK_S = 3.0
POLL_S = 0.02
WATCH_STEP_MS = 20
# Some file systems report nothing, and a change may fall before the watch has begun: look anyway.
LOOK_ANYWAY_MS = 500
MS_PER_S = 1000

Stamp = tuple[tuple[str, int, int, int] | None, ...]


class Watcher:
    """Watches the files of the current manifest; `nudge` asks for a look now (SIGHUP)."""

    def __init__(self, reconciler: Reconciler, on_nudge_done: Callable[[], None] = lambda: None) -> None:
        """`on_nudge_done` is called when a reload that somebody asked for has ended, well or badly."""
        self._reconciler = reconciler
        self._on_nudge_done = on_nudge_done
        self._nudged = asyncio.Event()
        self._stop = asyncio.Event()
        self._said = ""

    def nudge(self) -> None:
        """Reload although nothing was seen to change."""
        self._nudged.set()
        self._stop.set()

    async def run(self) -> None:
        """Watch and reload until cancelled. A failing reload is logged and does not end the watch."""
        # The file may have changed between its first reading and now.
        seen: Stamp = ()
        while True:
            try:
                seen = await self._next(seen)
            except Exception:
                log.exception("watching the manifest failed; looking again")
                await asyncio.sleep(REMOVAL_SETTLE_S)

    async def _next(self, seen: Stamp) -> Stamp:
        """Wait for a change of the files, or a nudge, and reload; the new stamp."""
        self._stop.clear()
        if not self._nudged.is_set() and await self._look() == seen:
            await self._wait_for_change(seen)
        asked = self._nudged.is_set()
        self._nudged.clear()
        try:
            now = await self._settled(SETTLE_S)
            if now == seen and not asked:
                return seen
            return await self._reload(now, asked=asked)
        finally:
            if asked:
                self._on_nudge_done()

    async def _wait_for_change(self, seen: Stamp) -> None:
        loop = asyncio.get_running_loop()
        recheck_s = loop.time() + RECHECK_S
        directories = await asyncio.to_thread(_directories, self._reconciler.watched)
        async for _ in self._ticks(directories):
            if self._stop.is_set() or await self._look() != seen:
                return
            if self._reconciler.current.problems and loop.time() > recheck_s:
                # A warning may be about something that no file of ours tells of, such as missing weights.
                self._reconciler.refresh(await self._reconciler.load())
                recheck_s = loop.time() + RECHECK_S

    async def _ticks(self, directories: set[str]) -> AsyncIterator[None]:
        """A tick for each change in the directories, and one now and then without, until `_stop` is set."""
        watching = awatch(
            *directories,
            recursive=False,
            debounce=WATCH_STEP_MS,
            step=WATCH_STEP_MS,
            rust_timeout=LOOK_ANYWAY_MS,
            yield_on_timeout=True,
            stop_event=self._stop,
            ignore_permission_denied=True,
            watch_filter=None,
        )
        try:
            async for _ in watching:
                yield
        except (OSError, RuntimeError, ValueError, ExceptionGroup) as error:
            # It takes no name that is no UTF-8, of any file, and the system gives out only so many watches.
            self._say_unwatched(directories, _first(error))
            async for _ in _clock(self._stop):
                yield

    def _say_unwatched(self, directories: set[str], error: Exception) -> None:
        """Once for each trouble: it comes up again with every look."""
        names, why = ", ".join(map(visible, sorted(directories))), visible(str(error))
        message = (
            f"changes in {names} are looked for every {LOOK_ANYWAY_MS} ms, they do not show by themselves"
        )
        if message != self._said:
            self._said = message
            log.warning("%s: %s", message, why)

    async def _reload(self, stamp: Stamp, *, asked: bool) -> Stamp:
        applied = await self._reconciler.load()
        if applied.loaded.manifest is None:
            await asyncio.sleep(SECOND_LOOK_S)
            stamp = await self._settled(SETTLE_S)
            applied = await self._reconciler.load()
        for _ in range(REMOVAL_LOOKS):
            if not applied.removes:
                break
            calm = await self._settled(REMOVAL_SETTLE_S)
            if calm == stamp:
                break
            stamp = calm
            applied = await self._reconciler.load()
        self._reconciler.accept(applied, asked=asked)
        return stamp

    async def _settled(self, quiet_s: float) -> Stamp:
        """Wait until the files have not changed for `quiet_s`, or keep changing for too long; their stamp."""
        loop = asyncio.get_running_loop()
        stamp, since = await self._look(), loop.time()
        deadline = since + LONGEST_SETTLE_S
        while loop.time() - since < quiet_s and loop.time() < deadline:
            await asyncio.sleep(POLL_S)
            now = await self._look()
            if now != stamp:
                stamp, since = now, loop.time()
        return stamp

    async def _look(self) -> Stamp:
        """The stamp of all files now; in a thread, since a file system may be slow."""
        return await asyncio.to_thread(lambda: _stamp(self._reconciler.watched()))


def _first(error: Exception) -> Exception:
    """What went wrong inside of a group of tasks."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


async def _clock(stop: asyncio.Event) -> AsyncIterator[None]:
    """A tick now and then, until `stop` is set."""
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), LOOK_ANYWAY_MS / MS_PER_S)
        yield


def _directories(watched: Callable[[], Iterable[Path]]) -> set[str]:
    """Where changes show: the directory of each name and, behind links, that of the real file."""
    # realpath: unlike Path.resolve it takes a loop of links as it is.
    real = [(file, Path(os.path.realpath(file))) for file in watched()]
    return {str(path.parent) for pair in real for path in pair if is_folder(path.parent)}


def _stamp(files: Iterable[Path]) -> Stamp:
    """Identity of the content, as far as `stat` tells: a renamed-in file differs by its inode."""
    stamps: list[tuple[str, int, int, int] | None] = []
    for file in files:
        try:
            info = file.stat()
        except OSError:
            stamps.append(None)
        else:
            stamps.append((str(file), info.st_ino, info.st_size, info.st_mtime_ns))
    return tuple(stamps)
