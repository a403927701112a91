"""A disk of a few megabytes that only some processes see, and that goes with the last of them.

It is a tmpfs in a mount namespace of its own: no mount of the machine changes, nothing has to be undone. Root
can make one, and so can others where the kernel lets users have namespaces.
"""

from __future__ import annotations

import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol

import psutil

FOR_EVER = resource.RLIM_INFINITY
PIECE = b"\0" * 65536
MOUNT = 'mount -t tmpfs -o size="$2",mode=0700 tmpfs "$1" && echo mounted && exec cat'


class Room(Protocol):
    """Where `up` writes its state."""

    def fill(self) -> int:
        """Leave none; how many bytes were taken."""
        ...

    def free(self) -> None:
        """Give it back."""
        ...


class NoNamespace(Exception):
    """The system allows none, as in most containers; the text is what it says."""


class FileLimit:
    """Not a full disk but a limit on the length of files, as `ulimit -f` sets it: it needs no rights."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def fill(self) -> int:
        """From now on no file of the process grows, nor of those that it starts."""
        self._process.rlimit(resource.RLIMIT_FSIZE, (0, FOR_EVER))
        return 0

    def free(self) -> None:
        """Files grow again."""
        self._process.rlimit(resource.RLIMIT_FSIZE, (FOR_EVER, FOR_EVER))


class SmallDisk:
    """Seen at `inside` by who is run behind `wrapper`, and at `outside` by everybody else."""

    def __init__(self, folder: Path, size: str) -> None:
        """Raises NoNamespace."""
        folder.mkdir(parents=True, exist_ok=True)
        self.inside = folder
        is_root = os.geteuid() == 0
        own = ["--mount"] if is_root else ["--mount", "--user", "--map-root-user"]
        # It waits at a pipe of ours, so it ends with us at the latest.
        self._holder = subprocess.Popen(
            ["unshare", *own, "sh", "-c", MOUNT, "sh", str(folder), size],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self._holder.stdout is not None
        said = self._holder.stdout.readline()
        if said != b"mounted\n":
            self.close()
            raise NoNamespace(said.decode(errors="replace").strip())
        user = [] if is_root else ["--user", "--preserve-credentials"]
        self.wrapper = ("nsenter", "--target", str(self._holder.pid), "--mount", *user, "--")
        self.outside = Path(f"/proc/{self._holder.pid}/root{folder}")

    def __enter__(self) -> SmallDisk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fill(self) -> int:
        """Take every byte that is left; how many that were."""
        taken = 0
        with (self.outside / "ballast").open("ab", buffering=0) as ballast:
            piece = PIECE
            while piece:
                try:
                    taken += ballast.write(piece)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    piece = piece[: len(piece) // 2]
        return taken

    def free(self) -> None:
        """Give it back."""
        (self.outside / "ballast").unlink(missing_ok=True)

    def close(self) -> None:
        """End what holds the disk."""
        if self._holder.stdin is not None:
            self._holder.stdin.close()
        self._holder.wait(10)
        if self._holder.stdout is not None:
            self._holder.stdout.close()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk | None]:
    """A disk at `folder`; None, and a folder like any other, where the system allows no namespaces."""
    try:
        disk = SmallDisk(folder, size)
    except NoNamespace as error:
        print(f"no small disk: {error}; a limit on the length of files stands in for it")
        folder.chmod(0o700)
        yield None
        return
    with disk:
        yield disk
