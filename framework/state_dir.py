"""The private directory of one manager: where it lies, that it is private, who holds it (01 §2.11).

`app` opens and locks it for the life of `up` and leaves the token and the bound address in it; the commands
read both. Refuses a directory of another user and one that others may enter.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import logging
import os
import pwd
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from framework.values.reason import Reason

log = logging.getLogger(__name__)

PRIVATE_DIR = 0o700
PRIVATE_FILE = 0o600
OTHERS = 0o077
PATH_DIGITS = 12
TOKEN_BYTES = 32
# A token has 43 characters and an address fewer than 300; more than this is not a file of ours.
SMALL_FILE_BYTES = 4096

TOKEN_FILE = "token"
LISTENER_FILE = "listen"
CERTIFICATE_FILE = "certificate.pem"
LOCK_FILE = "lock"
ID_FILE = "id"
ID_BYTES = 8
# Also a quota, and a limit on the length of files.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
ELSEWHERE = "Set PADDOCK_STATE_DIR to a directory of your own."


class StateDirError(Exception):
    """The directory cannot be used; the text says why and what to do."""


class StateDirFull(StateDirError):
    """Its disk has no room for now. Nothing on the way of a request needs any."""


def locate(manifest: Path, chosen: Path | None) -> Path:
    """The state directory of a manifest: the chosen one, or one of its own named after its real path."""
    if chosen is not None:
        return chosen.absolute()
    real = os.path.realpath(manifest)
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:PATH_DIGITS]
    return platformdirs.user_state_path("paddock", appauthor=False) / name


def prepare(directory: Path) -> None:
    """Make the directory and make sure that it is private. Raises StateDirError."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIR)
    except OSError as error:
        raise StateDirError(f"Cannot make the state directory {directory}: {_text(error)}.") from error
    fault = find_fault(directory)
    if fault is not None:
        raise StateDirError(f"{fault.message} {fault.remedy}")


def find_fault(directory: Path) -> Reason | None:
    """Why an existing directory cannot be trusted; None when it can."""
    try:
        link, real = directory.lstat(), directory.stat()
    except OSError as error:
        return _fault(f"The state directory {directory} cannot be used: {_text(error)}.", ELSEWHERE)
    if not stat.S_ISDIR(real.st_mode):
        return _fault(f"The state directory {directory} is not a directory.", f"Remove it. {ELSEWHERE}")
    if {link.st_uid, real.st_uid} != {os.geteuid()}:
        owner = _user_name(link.st_uid if link.st_uid != os.geteuid() else real.st_uid)
        return _fault(
            f"The state directory {directory} belongs to another user, {owner}.",
            f"Run this as that user, `sudo -u {owner} ...`. {ELSEWHERE}",
        )
    if real.st_mode & OTHERS:
        return _fault(
            f"Other users may enter the state directory {directory}.", f"Run `chmod 700 {directory}`."
        )
    return None


class Hold:
    """The directory of this process: no second `up` starts on it."""

    def __init__(self, directory: Path) -> None:
        """Raises StateDirError."""
        self.directory = directory
        self._handle = _locked(directory)

    def keep(self, token: str, address: str, state_id: str, certificate: Path | None = None) -> str:
        """Put back what somebody may have deleted: the lock, what commands find us and prove themselves by,
        and what the next life knows our processes by. Why it could not, or an empty text."""
        try:
            if not self.directory.exists():
                prepare(self.directory)
            # First: what somebody else has taken meanwhile is theirs.
            self._keep_lock()
            _keep(self.directory, token, address, state_id)
            if certificate is not None and not (self.directory / CERTIFICATE_FILE).exists():
                record_certificate(self.directory, certificate)
        except StateDirError as error:
            return str(error)
        return ""

    def _keep_lock(self) -> None:
        ours = os.fstat(self._handle)
        with contextlib.suppress(FileNotFoundError):
            there = (self.directory / LOCK_FILE).lstat()
            if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                return
        handle = _locked(self.directory)
        os.close(self._handle)
        self._handle = handle

    def let_go(self) -> None:
        """Somebody else may have it."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._handle, 0)
        os.close(self._handle)


@contextmanager
def hold(directory: Path) -> Iterator[Hold]:
    """Hold the directory. The end of the process lets go, however it ends."""
    held = Hold(directory)
    try:
        yield held
    finally:
        held.let_go()


def _locked(directory: Path) -> int:
    """A descriptor that holds the lock. Raises StateDirError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(directory / LOCK_FILE, flags, PRIVATE_FILE)
    except OSError as error:
        raise StateDirError(f"Cannot lock the state directory {directory}: {_text(error)}.") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = _held_text(directory, handle)
        os.close(handle)
        raise StateDirError(text) from None
    with contextlib.suppress(OSError):
        # For messages only, and a disk may be full.
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
    return handle


def identity(directory: Path) -> str:
    """The lasting id of this directory, made on first use; processes of ours are known by it (07 §6.2)."""
    known = _read(directory, ID_FILE)
    if known is not None:
        return known
    made = secrets.token_hex(ID_BYTES)
    with contextlib.suppress(StateDirFull):
        _write(directory / ID_FILE, made)
    return made


def _keep(directory: Path, token: str, address: str, state_id: str) -> None:
    """Put back what commands need to find us, and what the next life knows our processes by, should somebody
    have deleted it or the disk have had no room. Raises StateDirError."""
    for name, text in ((TOKEN_FILE, token), (LISTENER_FILE, address), (ID_FILE, state_id)):
        known = _read(directory, name)
        if not (directory / name).exists() or (known is not None and known != text):
            _write(directory / name, text)


def new_token(directory: Path) -> str:
    """Write a fresh token that proves the operator, and return it, written or not: what the disk has no room
    for is written by `Hold.keep`. Raises StateDirError for everything else."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    _leave(directory / TOKEN_FILE, token)
    return token


def record_listener(directory: Path, address: str) -> None:
    """Leave the bound address, so that commands find the server even while the manifest is broken; one of TLS
    begins with `https://`. As `new_token` where the disk has no room."""
    _leave(directory / LISTENER_FILE, address)


def record_certificate(directory: Path, certificate: Path) -> None:
    """Leave the certificate that the listener shows, by which commands know that it is ours."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        _leave(directory / CERTIFICATE_FILE, certificate.read_text(encoding="ascii"))


def forget(directory: Path) -> None:
    """Remove token and address at the end of `up`; what is already gone is fine."""
    for name in (TOKEN_FILE, LISTENER_FILE, CERTIFICATE_FILE):
        with contextlib.suppress(OSError):
            (directory / name).unlink()


def find_reading_fault(directory: Path) -> Reason | None:
    """Why what a running server left cannot be trusted; None when it can, or when there is nothing."""
    if not os.path.lexists(directory):
        return None
    fault = find_fault(directory)
    for path in (directory / TOKEN_FILE, directory / LISTENER_FILE):
        with contextlib.suppress(OSError):
            fault = fault or _file_fault(path, path.lstat())
    return fault


def read_token(directory: Path) -> str | None:
    """The token of the running server; None when there is none or the directory cannot be trusted."""
    return _read(directory, TOKEN_FILE)


def read_listener(directory: Path) -> str | None:
    """The address of the running server; None as for `read_token`."""
    return _read(directory, LISTENER_FILE)


def _held_text(directory: Path, handle: int) -> str:
    pid = os.pread(handle, SMALL_FILE_BYTES, 0).decode("ascii", "replace")
    holder = f"Process {pid}" if pid.isdecimal() else "Another process"
    return f"{holder} already runs this manifest with the state directory {directory}; stop it first."


def _leave(path: Path, text: str) -> None:
    """Write what commands read of this life; what an earlier one left there is no use to anybody."""
    try:
        _write(path, text)
    except StateDirFull as full:
        with contextlib.suppress(OSError):
            path.unlink()
        try:
            # In the room that the old one had.
            _write(path, text)
        except StateDirFull:
            log.warning("%s Commands cannot find or reach this server until there is room.", full)


def _write(path: Path, text: str) -> None:
    """Write a private file in one step: readers see the old text or the new one."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(temporary, flags, PRIVATE_FILE)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        kind = StateDirFull if error.errno in FULL else StateDirError
        raise kind(f"Cannot write {path}: {_text(error)}.") from error


def _read(directory: Path, name: str) -> str | None:
    if find_fault(directory) is not None:
        return None
    # Non-blocking: a pipe in the file's place must not make us wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        handle = os.open(directory / name, flags)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if _file_fault(directory / name, os.fstat(file.fileno())) is not None:
            return None
        text = file.read(SMALL_FILE_BYTES).decode("utf-8", "replace").strip()
    return text or None


def _file_fault(path: Path, found: os.stat_result) -> Reason | None:
    """Why a file may be another's work, or another's to read."""
    if found.st_uid != os.geteuid() or not stat.S_ISREG(found.st_mode):
        return _fault(f"{path} is no file of yours.", "Remove it and start `paddock up` again.")
    if found.st_mode & OTHERS:
        return _fault(f"Other users may read {path}.", f"Run `chmod 600 {path}`.")
    return None


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"


def _fault(message: str, remedy: str) -> Reason:
    return Reason("state_dir_unusable", message, remedy, "error")


def _text(error: OSError) -> str:
    return error.strerror or type(error).__name__
