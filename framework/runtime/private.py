"""Folders that only this user can enter, whatever of them is missing (01 §2.11)."""

from __future__ import annotations

from pathlib import Path

PRIVATE = 0o700


def make_private(directory: Path) -> None:
    """Make a folder and every missing one above it, each private from its first moment. Raises OSError.

    `mkdir(parents=True)` would make the ones above with everybody's rights.
    """
    missing = [directory]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        folder.mkdir(mode=PRIVATE, exist_ok=True)
