"""Texts that an apply replaced, kept for going back: a bounded number of files in the state directory.

Each version is two private files: `N.toml`, what the file held, byte for byte, and `N.json`, when, by whom
and for what it was replaced. Called by editor; blocking.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson

from framework.editing.disk import why_not_written
from framework.editing.documents import ManifestFile
from framework.editing.refusal import EditRefused
from framework.manifest.document import MAX_FILE_BYTES, Unreadable, read_bytes

FOLDER = "manifest-history"
# Some weeks of an operator who edits every day.
MOST_VERSIONS = 50
# The largest manifests are 1 MiB each.
MOST_BYTES = 20 * 2**20
# Names, a summary: more than this is no file of ours.
NOTE_BYTES = 2**16
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
NOTE, TEXT = ".json", ".toml"
NUMBERED = re.compile(r"([1-9][0-9]{0,8})(\.json|\.toml)")


@dataclass(frozen=True)
class Version:
    """A text that was replaced. `at`, `by` and `summary` are of the apply that replaced it."""

    id: int
    at: datetime
    by: str
    file: str
    """As problems name it."""
    sha256: str
    """Of the text."""
    replaced_by_sha256: str
    size_bytes: int
    summary: str


class History:
    """The versions of one manifest, below its state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / FOLDER

    def versions(self) -> tuple[Version, ...]:
        """All that can be read, newest first."""
        found = (self._version(number) for number in self._numbers(NOTE))
        return tuple(version for version in found if version is not None)

    def text_of(self, version: Version) -> bytes:
        """What the file held. Raises KeyError when that is gone."""
        try:
            return read_bytes(self._file(version.id, TEXT), MAX_FILE_BYTES)
        except Unreadable as error:
            raise KeyError(version.id) from error

    def keep(
        self, file: ManifestFile, replaced_by_sha256: str, *, at: datetime, by: str, summary: str
    ) -> Version:
        """Keep what a file holds before it is replaced, and drop the oldest. Raises EditRefused."""
        # A kill between the two files leaves a text alone: its number is taken, too.
        number = max(self._numbers(NOTE, TEXT), default=0) + 1
        version = Version(number, at, by, file.name, file.sha256, replaced_by_sha256, len(file.raw), summary)
        note = orjson.dumps({**version.__dict__, "at": at.isoformat()})
        try:
            self._folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            self._folder.chmod(PRIVATE_FOLDER)
            self._write(self._file(number, TEXT), file.raw)
            self._write(self._file(number, NOTE), note)
        except OSError as error:
            self.drop(number)
            raise EditRefused(why_not_written(self._file(number, TEXT), error)) from error
        self._prune()
        return version

    def drop(self, number: int) -> None:
        """Forget a version, for instance because its apply did not come to pass."""
        for ending in (NOTE, TEXT):
            with contextlib.suppress(OSError):
                self._file(number, ending).unlink()

    def _file(self, number: int, ending: str) -> Path:
        return self._folder / f"{number}{ending}"

    def _numbers(self, *endings: str) -> list[int]:
        """Of the files that end so, newest first."""
        try:
            names = os.listdir(self._folder)  # noqa: PTH208
        except OSError:
            return []
        hits = (hit for name in names if (hit := NUMBERED.fullmatch(name)) and hit[2] in endings)
        return sorted((int(hit[1]) for hit in hits), reverse=True)

    def _version(self, number: int) -> Version | None:
        """One note; None for what is not one of ours."""
        try:
            note = orjson.loads(read_bytes(self._file(number, NOTE), NOTE_BYTES))
            version = Version(**{**note, "id": number, "at": datetime.fromisoformat(note["at"])})
            return version if _is_sound(version) else None
        except (Unreadable, ValueError, TypeError, KeyError):
            return None

    def _write(self, path: Path, content: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path, flags, stat.S_IMODE(PRIVATE_FILE))
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def _prune(self) -> None:
        for number in set(self._numbers(TEXT)).difference(self._numbers(NOTE)):
            self.drop(number)
        total = 0
        for place, version in enumerate(self.versions()):
            total += version.size_bytes
            if place and (place >= MOST_VERSIONS or total > MOST_BYTES):
                self.drop(version.id)


def _is_sound(version: Version) -> bool:
    """Whether a note holds what it should: somebody may have written it by hand."""
    texts = (version.by, version.file, version.sha256, version.replaced_by_sha256, version.summary)
    is_counted = type(version.size_bytes) is int and version.size_bytes >= 0
    return is_counted and version.at.tzinfo is not None and all(isinstance(text, str) for text in texts)
