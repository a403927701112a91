"""The download process: one job from stdin, notes and one answer to stdout.

A process of its own, because the hub's client blocks, sleeps when it is told to wait, and cannot be
interrupted; ending the process always ends it. It also ends when its stdin does, that is, with the manager.
Started by hub.process.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from typing import TextIO

from framework.models.hub import refusals
from framework.models.hub.mode import endpoint
from framework.models.hub.wire import Job, Note, answer_line, note_line, refusal_line
from framework.values.reason import Refused

ORPHANED = 3
MEMORY_LIMIT_BYTES = 4 * 2**30


def main() -> None:
    """Do the job."""
    # Whatever a library prints must not end up between our lines.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    bound_memory()
    job = Job.from_line(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_manager, name="end with the manager", daemon=True).start()
    try:
        line = _work(job, out)
    except Refused as refusal:
        line = refusal_line(refusal)
    except Exception as error:  # noqa: BLE001  the manager is told, whatever it is
        # Not its text: that may hold an address with a signature.
        line = refusal_line(refusals.worker_failed(job.repo, type(error).__name__))
    _print(out, line)


def bound_memory() -> None:
    """A last resort: what a hub sends is bounded where it is read, and the machine is for models."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = MEMORY_LIMIT_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _work(job: Job, out: TextIO) -> str:
    try:
        from framework.models.hub.download import carry_out
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("huggingface_hub", "httpx2", "filelock"):
            raise
        raise refusals.client_missing(sys.executable) from error

    def say(note: Note) -> None:
        _print(out, note_line(note))

    return answer_line(carry_out(job, endpoint(os.environ), say))


def _end_with_manager() -> None:
    """The manager holds the other end of stdin; when it goes, however it goes, so do we."""
    while sys.stdin.buffer.read(1):
        pass
    os._exit(ORPHANED)


def _print(out: TextIO, line: str) -> None:
    out.write(line + "\n")
    out.flush()


if __name__ == "__main__":
    main()
