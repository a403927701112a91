"""One download per repository over all processes of this machine (02 §9).

The lock is a file beside those of the hub's own client and goes with its process, however that ends. Whoever
waits sees how far the other one is. Called by hub.download.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from framework.models.hub import refusals
from framework.models.hub.places import repo_folder

POLL_S = 0.25
SMALL = 64
LOCK_NAME = "paddock.lock"
# Group-writable, as the hub's own locks are: a cache may be shared.
LOCK_MODE = 0o664


@contextmanager
def repo_lock(
    cache: Path,
    repo: str,
    *,
    busy_s: float,
    look: Callable[[], int],
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold the repository. While another process does, `look()` is called: it returns the bytes that
    are here, and when they do not grow for `busy_s` the lock is refused with `repo_busy`."""
    path = cache / ".locks" / repo_folder(repo).lower() / LOCK_NAME
    handle = _open(path, cache)
    try:
        _acquire(handle, repo, busy_s, look, sleep)
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)


def _open(path: Path, cache: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, LOCK_MODE)
    except OSError as error:
        raise refusals.cache_unusable(str(cache), error.strerror or str(error)) from error


def _acquire(
    handle: int, repo: str, busy_s: float, look: Callable[[], int], sleep: Callable[[float], None]
) -> None:
    best, quiet_since_s = -1, time.monotonic()
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        except OSError:
            # A file system without locks: the client's own lock for each file is left.
            return
        else:
            return
        here, now_s = look(), time.monotonic()
        if here > best:
            best, quiet_since_s = here, now_s
        elif now_s - quiet_since_s >= busy_s:
            raise refusals.busy(repo, _holder(handle), busy_s)
        sleep(POLL_S)


def _holder(handle: int) -> str:
    text = os.pread(handle, SMALL, 0).decode("ascii", "replace")
    return f"Process {text}" if text.isdecimal() else "Another process"
