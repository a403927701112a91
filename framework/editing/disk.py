"""Put a new content into a file in one step: readers see the old one or the new one, also after a power cut.

Links are followed to the real file, which keeps its rights, its owner where the system allows that, and its
extended attributes. Refuses a file that changed since it was read, and one that is meant to be left alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from framework.editing.documents import digest_of
from framework.editing.refusal import EditRefused
from framework.manifest.document import MAX_FILE_BYTES, Unreadable, read_bytes
from framework.values.reason import Reason

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
READ_ONLY = frozenset({errno.EROFS, errno.EPERM, errno.EACCES})
ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
RIGHTS = 0o777


def replace_content(path: Path, raw: bytes, base_sha256: str) -> int:
    """Write `raw` where `path` leads, if that still holds what `base_sha256` says. Blocking.

    Returns how many other names the old file has: hard links, which keep the old text, as a copy of a backup
    is meant to. Raises EditRefused.
    """
    try:
        real = path.resolve(strict=True)
        found = real.stat()
    except (OSError, RuntimeError) as error:
        raise EditRefused(_unwritable(path, f"cannot be found: {_text(error)}")) from error
    _require_unchanged(real, base_sha256)
    if not found.st_mode & ANY_WRITE or not os.access(real, os.W_OK):
        raise EditRefused(read_only(real))
    try:
        _replace(real, raw, found, base_sha256)
    except OSError as error:
        raise EditRefused(why_not_written(real, error)) from error
    return found.st_nlink - 1


def read_only(real: Path) -> Reason:
    """The file is not to be written."""
    return Reason(
        "manifest_read_only",
        f"{real} is read-only for Paddock; nothing was written.",
        f"Give the user who runs Paddock the right to write it (chmod u+w {real.name}), or edit it where it"
        " comes from.",
        "error",
        {"path": str(real)},
    )


def changed_underneath(path: Path, found_sha256: str, base_sha256: str) -> Reason:
    """Somebody else wrote the file meanwhile."""
    return Reason(
        "manifest_changed",
        f"{path} is not what this edit began with any more: somebody else wrote it meanwhile. Nothing was"
        " written.",
        "Look at what it holds now, take over what you need, and apply again.",
        "error",
        {"path": str(path), "found_sha256": found_sha256, "base_sha256": base_sha256},
    )


def why_not_written(path: Path, error: OSError) -> Reason:
    """What the system said, in words."""
    if error.errno in FULL:
        return Reason(
            "manifest_disk_full",
            f"There is no room for a new {path}: {_text(error)}. Nothing was written.",
            f"Free space on the file system of {path.parent}, then apply again.",
            "error",
            {"path": str(path)},
        )
    if error.errno == errno.EBUSY:
        return _unwritable(
            path, "is mounted by itself and cannot be replaced", "Mount the folder that it lies in instead."
        )
    if error.errno in READ_ONLY:
        remedy = f"Give the user who runs Paddock the right to write into {path.parent}."
        return _unwritable(path, f"lies in a folder that cannot be written: {_text(error)}", remedy)
    return _unwritable(path, f"cannot be written: {_text(error)}")


def _unwritable(path: Path, what: str, remedy: str = "") -> Reason:
    return Reason(
        "manifest_unwritable",
        f"{path} {what}. Nothing was written.",
        remedy or f"See that {path.parent} is there and can be written, then apply again.",
        "error",
        {"path": str(path)},
    )


def _require_unchanged(real: Path, base_sha256: str) -> None:
    try:
        sha256 = digest_of(read_bytes(real, MAX_FILE_BYTES))
    except Unreadable as error:
        raise EditRefused(_unwritable(real, str(error))) from error
    if sha256 != base_sha256:
        raise EditRefused(changed_underneath(real, sha256, base_sha256))


def _replace(real: Path, raw: bytes, found: os.stat_result, base_sha256: str) -> None:
    # Begins with a dot: no pattern of `include` catches it.
    draft = real.with_name(f".{real.name}.{secrets.token_hex(4)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(draft, flags, stat.S_IRUSR | stat.S_IWUSR)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            _take_over(file.fileno(), real, found)
            os.fsync(file.fileno())
        # Again, at the last moment: writing may have taken long.
        _require_unchanged(real, base_sha256)
        draft.replace(real)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    # The new file is there; a file system that cannot sync a folder does not take it back.
    with contextlib.suppress(OSError):
        _sync_folder(real.parent)


def _take_over(handle: int, real: Path, found: os.stat_result) -> None:
    """Owner, attributes and rights of the file that is replaced, as far as this user may give them."""
    for owner in ((found.st_uid, found.st_gid), (-1, found.st_gid)):
        with contextlib.suppress(OSError):
            os.fchown(handle, *owner)
            break
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(real):
                with contextlib.suppress(OSError):
                    os.setxattr(handle, name, os.getxattr(real, name))
    os.fchmod(handle, found.st_mode & RIGHTS)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _text(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
