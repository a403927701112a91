"""Names and places of slot files (12 §15.6). Called by slot_actions."""

from __future__ import annotations

import stat
from pathlib import Path

from framework.nativeserver.errors import ApiError

MOST_NAME_BYTES = 255
FORBIDDEN = frozenset('/\\:"*?<>|')
"""Separators, and what some file systems take for more than a name."""
INVALID = "Invalid filename"


def slot_file(folder: Path, name: str) -> Path:
    """The path of a slot file, which may not exist yet. Raises ApiError.

    Only a regular file may stand there: a link could lead out of the folder, and a pipe would hold up the
    decode thread for ever.
    """
    if not is_valid_name(name):
        raise ApiError("invalid_request", INVALID)
    path = folder / name
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return path
    except OSError as problem:
        raise ApiError("invalid_request", f"{INVALID}: {problem.strerror}") from None
    if not stat.S_ISREG(mode):
        raise ApiError("invalid_request", f"{INVALID}: it is no regular file")
    return path


def is_valid_name(name: str) -> bool:
    """Whether a client's text is a plain file name. Pure."""
    try:
        n_bytes = len(name.encode())
    except UnicodeEncodeError:
        return False
    return (
        0 < n_bytes <= MOST_NAME_BYTES
        and name not in (".", "..")
        and name == name.strip(" ")
        and not name.endswith(".")
        and not any(mark in FORBIDDEN or _is_control(mark) for mark in name)
    )


def _is_control(mark: str) -> bool:
    code = ord(mark)
    return code < 0x20 or 0x7F <= code < 0xA0
