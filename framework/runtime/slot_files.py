"""The folder of a replica's saved slots: made, looked at, read, emptied (07 §11.2, §11.8). Blocking.

Called in worker threads. The files hold conversations: the folder is this user's alone, nothing in it is
followed or believed that is not plainly ours, and what nobody names goes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from framework.models.own_files import PRIVATE_FILE, is_own_folder, is_own_place, read_own, write_own
from framework.planning.slot_saving.fingerprint import Stamp
from framework.planning.slot_saving.record import Record, decode
from framework.runtime.private import make_private
from framework.values.naming import file_name
from framework.values.reason import Reason
from framework.values.request import ModelRequest

log = logging.getLogger(__name__)

FOLDER, RECORD = "slots", "resume.json"
RECORD_LIMIT_BYTES = 2**20


def slot_folder(state_dir: Path, model: str, replica: int) -> Path:
    """Where a replica's slots are saved."""
    return state_dir / FOLDER / f"{file_name(model)}.{replica}"


def open_folder(folder: Path) -> Reason | None:
    """Make the folder; why it cannot be used, where that is so."""
    try:
        make_private(folder)
        if is_own_place(folder):
            return None
        why = "it, or the folder above it, is a link or not this user's alone"
    except OSError as error:
        why = error.strerror or type(error).__name__
    return Reason(
        "slot_folder_unusable",
        f"Its conversations are read again after each start: {folder} cannot be used: {why}.",
        "Remove it, or give it back to this user with mode 0700; the next start makes it anew.",
        "warning",
        {"path": str(folder)},
    )


def stamps(paths: Iterable[Path]) -> dict[Path, Stamp | None]:
    """Size and time of change of each file, links followed; None for one that cannot be looked at."""
    found: dict[Path, Stamp | None] = {}
    for path in paths:
        try:
            info = path.stat()
            found[path] = (info.st_size, info.st_mtime_ns)
        except (OSError, ValueError):
            found[path] = None
    return found


def free_bytes(folder: Path) -> int | None:
    """What is free where the folder lies; None where nobody says."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def size_of(path: Path) -> int | None:
    """Size of a regular file of ours; None for anything else, links included."""
    try:
        found = path.lstat()
    except OSError:
        return None
    is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    return found.st_size if is_ours else None


def seal(path: Path) -> int | None:
    """Take others' rights from a file that the engine wrote; its size, None where it is no file of ours."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        handle = os.open(path, flags)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return None
        os.fchmod(handle, PRIVATE_FILE)
        return found.st_size
    except OSError:
        return None
    finally:
        os.close(handle)


def keep_record(folder: Path, data: bytes) -> None:
    """Write the record: from here on the files are somebody's. Raises OSError."""
    write_own(folder / RECORD, data)


def take_record(folder: Path) -> Record | None:
    """The record, which is gone when this returns: what breaks an engine is not tried twice."""
    data = read_own(folder / RECORD, RECORD_LIMIT_BYTES) if is_own_place(folder) else None
    discard(folder / RECORD)
    return None if data is None else decode(data)


def discard(path: Path) -> None:
    """Delete a file; one that is gone already is fine."""
    with contextlib.suppress(OSError):
        path.unlink()


def clear(folder: Path, keep: Iterable[str] = ()) -> None:
    """Delete everything in a folder of ours but these names. Never raises."""
    if not is_own_folder(folder):
        return
    kept = frozenset(keep)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name not in kept:
                discard(Path(entry.path))


def drop_orphans(state_dir: Path) -> None:
    """What an earlier life left behind half written: files that no record names. REQUIRES: nothing is being
    saved. Never raises."""
    for folder in _folders(state_dir):
        data = read_own(folder / RECORD, RECORD_LIMIT_BYTES)
        record = None if data is None else decode(data)
        named = () if record is None else (RECORD, *(slot.filename for slot in record.slots))
        clear(folder, named)


def drop_undeclared(state_dir: Path, models: Iterable[ModelRequest]) -> None:
    """What was saved for replicas that the manifest does not have any more, or that save nothing. Never
    raises."""
    declared = {
        slot_folder(state_dir, request.id, replica)
        for request in models
        if request.slot_save
        for replica in range(request.live.replicas)
    }
    for folder in _folders(state_dir):
        if folder not in declared:
            clear(folder)
            with contextlib.suppress(OSError):
                folder.rmdir()


def _folders(state_dir: Path) -> list[Path]:
    """Folders of replicas, each of them ours."""
    top = state_dir / FOLDER
    if not is_own_folder(top):
        return []
    try:
        with os.scandir(top) as entries:
            found = [Path(entry.path) for entry in entries]
    except OSError as error:
        log.warning("saved slots in %s cannot be looked at: %s", top, error)
        return []
    return [folder for folder in found if is_own_folder(folder)]
