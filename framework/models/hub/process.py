"""Run one job in a download process, off the event loop; cancelling it ends the process (02 §10).

Called by hub.sources.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import framework
from framework.models.hub import refusals
from framework.models.hub.wire import LONGEST_LINE, Job, Note, read_line
from framework.values.reason import Refused

MODULE = "framework.models.hub.worker"
PACKAGE_ROOT = Path(framework.__file__).resolve().parent.parent
END_WAIT_S = 5.0
# Of the client's own settings: it draws no bars, reports nothing, and looks for no newer version of itself.
CLIENT_SETTINGS = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_HUB_OFFLINE": "0",
}


async def run_job(job: Job, environ: Mapping[str, str], on_note: Callable[[Note], None]) -> Mapping[str, Any]:
    """The answer of a job. Raises Refused; when cancelled, the process has ended before this returns."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        MODULE,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment(environ, job.cache_dir),
        start_new_session=True,
        limit=LONGEST_LINE,
    )
    try:
        return await _converse(process, job, on_note)
    finally:
        await _end(process)


def child_environment(environ: Mapping[str, str], cache_dir: str) -> dict[str, str]:
    """The manager's environment, tokens of the hub included, with the settings of the client laid over it."""
    path = os.pathsep.join(part for part in (str(PACKAGE_ROOT), environ.get("PYTHONPATH", "")) if part)
    return {**environ, **CLIENT_SETTINGS, "HF_HUB_CACHE": cache_dir, "PYTHONPATH": path}


async def _converse(
    process: asyncio.subprocess.Process, job: Job, on_note: Callable[[Note], None]
) -> Mapping[str, Any]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the download process has no pipes")
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(job.to_line())
        await process.stdin.drain()
    try:
        async for line in process.stdout:
            message = read_line(line)
            if isinstance(message, Note):
                on_note(message)
            elif isinstance(message, Refused):
                raise message
            elif message is not None:
                return message
    except ValueError:
        raise refusals.worker_failed(job.repo, "it sent a line that is too long") from None
    code = await process.wait()
    raise refusals.worker_failed(job.repo, f"exit code {code}")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill it, unless it has gone; its files are made to survive that."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    ending = asyncio.ensure_future(process.wait())
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(ending), END_WAIT_S)
