"""A folder of its own for a process that measures: whatever an engine writes where it stands goes with it.

Called by dry_run. A manager that was killed leaves its folder behind; the next measurement of the same user
removes it, once it is older than any measurement lasts.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

PREFIX = "paddock-measure-"
# Many times the limit of a measurement, so that no folder in use is that old.
LEFT_BEHIND_S = 3600.0


@contextmanager
def working_folder(parent: Path | None = None) -> Iterator[str]:
    """A new private folder in the system's directory for temporary files, gone at the end.

    Raises OSError where none can be made.
    """
    directory = Path(tempfile.gettempdir()) if parent is None else parent
    remove_left_behind(directory, datetime.now(UTC).timestamp())
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=directory, ignore_cleanup_errors=True) as folder:
        yield folder


def remove_left_behind(directory: Path, now_s: float) -> None:
    """Remove folders of ours that their process cannot need any more. Never raises; touches nobody else's."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and _is_left_behind(entry, now_s):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_left_behind(entry: os.DirEntry[str], now_s: float) -> bool:
    """A link is none: what it leads to may be anything."""
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_ours and now_s - found.st_mtime > LEFT_BEHIND_S
