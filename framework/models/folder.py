"""The model files that lie in some folders, for looking around in them. Blocks; call it in a worker thread.

Called by api.file_scan. Only looks at names and sizes: what the files hold is for facts. Bounded in depth
and number, so that a folder which is no folder of models, or links in circles, costs little.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from framework.models.file_names import is_gguf, is_helper, shard
from framework.values.engine import FileId

# Folders below the one that is named: `owner/repository/file.gguf` is how others lay them out.
DEPTH = 2
MOST_FILES = 500
MOST_ENTRIES = 20_000

Place = tuple[int, int]
"""Device and inode: what a folder is, whichever way it was reached."""


@dataclass(frozen=True)
class FoundModel:
    """One model by its file names: its shards that are there, the first one first."""

    files: tuple[FileId, ...]

    @property
    def path(self) -> Path:
        """Its first file."""
        return self.files[0].path

    @property
    def size_bytes(self) -> int:
        """Size of all its files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class Found:
    """Sorted by folder and name. Not `complete` when a limit was met."""

    models: tuple[FoundModel, ...] = ()
    complete: bool = True


def find_models(folders: Iterable[Path], files: Iterable[Path] = ()) -> Found:
    """The models in these folders, and those that `files` name themselves; each once.

    A folder that cannot be looked at counts as empty.
    """
    walk = _Walk()
    for folder in folders:
        walk.enter(folder, DEPTH)
    for path in files:
        walk.note(path)
    return Found(tuple(_models(walk.files)), walk.complete)


@dataclass
class _Walk:
    """Files found so far, and the folders that were seen."""

    files: dict[Path, FileId] = field(default_factory=dict)
    complete: bool = True
    _seen: set[Place] = field(default_factory=set)
    _entries: int = 0

    def enter(self, folder: Path, depth: int) -> None:
        """Look through a folder and, while `depth` is left, those in it."""
        try:
            status = folder.stat()
            place = (status.st_dev, status.st_ino)
            if place in self._seen:
                return
            self._seen.add(place)
            below = list(self._look(folder))
        except OSError:
            return
        if depth:
            for path in sorted(below):
                self.enter(path, depth - 1)

    def _look(self, folder: Path) -> Iterator[Path]:
        """Note the files of a folder; what is given back are the folders in it."""
        with os.scandir(folder) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > MOST_ENTRIES:
                    self.complete = False
                    return
                if entry.name.startswith("."):
                    continue
                if is_gguf(entry.name) and not is_helper(entry.name):
                    self.note(Path(entry.path))
                elif _is_folder(entry):
                    yield Path(entry.path)

    def note(self, path: Path) -> None:
        """Take a file, links followed; a link that leads nowhere has the size 0."""
        if path in self.files:
            return
        if len(self.files) >= MOST_FILES:
            self.complete = False
            return
        try:
            status = path.stat()
            self.files[path] = FileId(path, status.st_size, status.st_mtime_ns)
        except OSError:
            self.files[path] = FileId(path, 0, 0)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, links followed; one that leads in a circle is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _models(files: dict[Path, FileId]) -> Iterator[FoundModel]:
    """Shards of one set are one model."""
    sets: dict[tuple[Path, str, str], list[FileId]] = {}
    for path in sorted(files, key=_order):
        part = shard(path.name)
        key = (path.parent, part.prefix, part.total) if part else (path.parent, path.name, "")
        sets.setdefault(key, []).append(files[path])
    for parts in sets.values():
        yield FoundModel(tuple(parts))


def _order(path: Path) -> tuple[str, str, str]:
    return str(path.parent), path.name.lower(), path.name
