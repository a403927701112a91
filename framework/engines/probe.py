"""Ask a binary what it can do, once (06 §4.1, §4.8-4.10). Called at plan time and by `paddock engines`.

Results live in the process, by file identity: an answer holds until the file changes, a failed probe for
a minute, since a busy host must not cost a model its features until the next install.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from framework.engines.child_env import probe_environment
from framework.engines.help_text import parse_help
from framework.engines.library_path import library_path
from framework.engines.process_output import ProcessOutput, process_output
from framework.values.engine import Capabilities, EngineBinary, FileId

PROBE_TIMEOUT_S = 10.0
INCONCLUSIVE_S = 60.0
# The longest real help text has some 60 kB. A part of one would make flags unknown that are there.
LONGEST_HELP, LONGEST_VERSION = 2**18, 2**12
MISSING = Capabilities(fault="does not exist any more")


async def probe(
    binary: EngineBinary, environ: Mapping[str, str], *, timeout_s: float = PROBE_TIMEOUT_S
) -> Capabilities:
    """Run `--help`, then `--version`, and read them. Never raises for what the binary does."""
    env = probe_environment(environ, library_path(binary, environ))
    entry = str(binary.entry)
    help_output = await process_output((entry, "--help"), env, timeout_s=timeout_s)
    if help_output.exit_code is None:  # no start or no end: the version would not come either
        return Capabilities(fault=help_output.fault)
    text = _text(help_output)
    if len(text) > LONGEST_HELP:
        return Capabilities(fault=f"has a help text of more than {LONGEST_HELP // 1024} KiB")
    version = await process_output((entry, "--version"), env, timeout_s=timeout_s)
    told = _text(version)[:LONGEST_VERSION]
    # In a thread: a text that means ill takes its time.
    caps = await asyncio.to_thread(parse_help, text, exit_code=help_output.exit_code, version_text=told)
    return caps if caps.conclusive else replace(caps, fault=_fault(help_output.exit_code))


@dataclass
class _Running:
    file: FileId
    task: asyncio.Task[Capabilities]
    waiting: int = 0


@dataclass(frozen=True)
class _Known:
    file: FileId
    caps: Capabilities
    until_s: float | None
    """Monotonic time at which the answer is forgotten; None = never."""


class CapabilityCache:
    """Probe results of this process. Belongs to one event loop."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, timeout_s: float = PROBE_TIMEOUT_S
    ) -> None:
        self._clock = clock
        self._timeout_s = timeout_s
        self._known: dict[Path, _Known] = {}
        self._running: dict[FileId, _Running] = {}

    async def get(self, binary: EngineBinary, environ: Mapping[str, str]) -> Capabilities:
        """What `binary` can do. Callers that come together share one probe.

        A caller that is cancelled leaves it to the others; the last one to leave ends the probe.
        """
        known = self._known.get(binary.file.path)
        if known and known.file == binary.file and (known.until_s is None or self._clock() < known.until_s):
            return known.caps
        running = self._running.get(binary.file)
        if running is None:
            running = self._start(binary, environ)
        running.waiting += 1
        try:
            return await asyncio.shield(running.task)
        finally:
            running.waiting -= 1
            if running.waiting == 0 and not running.task.done():
                self._forget(running)  # at once: whoever comes next must not join a probe that is ending
                running.task.cancel()

    def _start(self, binary: EngineBinary, environ: Mapping[str, str]) -> _Running:
        running = _Running(binary.file, asyncio.create_task(self._probe(binary, environ)))
        self._running[binary.file] = running
        running.task.add_done_callback(lambda _: self._forget(running))
        return running

    def _forget(self, running: _Running) -> None:
        if self._running.get(running.file) is running:
            del self._running[running.file]

    async def _probe(self, binary: EngineBinary, environ: Mapping[str, str]) -> Capabilities:
        if not binary.entry.is_file():
            return MISSING  # 06 §4.8: nothing is remembered about a file that is not there
        caps = await probe(binary, environ, timeout_s=self._timeout_s)
        until_s = None if caps.conclusive else self._clock() + INCONCLUSIVE_S
        self._known[binary.file.path] = _Known(binary.file, caps, until_s)
        return caps


def _fault(exit_code: int) -> str:
    """How `--help` failed although it ended by itself."""
    if exit_code < 0:
        return f"was ended by signal {-exit_code} when asked for its help text"
    return f"exited with {exit_code}" if exit_code else "has no help text"


def _text(output: ProcessOutput) -> str:
    return f"{output.stdout}\n{output.stderr}"
