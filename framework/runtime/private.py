"""Folders that only this user can enter, whatever of them is missing, and what lies there (01 §2.11)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PRIVATE = 0o700


class Unwritable(OSError):
    """What a start needs in the state directory cannot be made; `filename` is its path. Space, or rights, may
    come back."""


@contextmanager
def made_at(path: Path) -> Iterator[None]:
    """Raises Unwritable in place of any other OSError: nothing else in the block touches the system."""
    try:
        yield
    except OSError as error:
        raise Unwritable(error.errno, error.strerror or str(error), str(path)) from error


def make_private(directory: Path) -> None:
    """Make a folder and every missing one above it, each private from its first moment. Raises OSError.

    `mkdir(parents=True)` would make the ones above with everybody's rights.
    """
    missing = [directory]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        folder.mkdir(mode=PRIVATE, exist_ok=True)
