"""Paths in a manifest, and the small files that it names: templates and keys.

Paths are relative to the directory of the manifest; `~/` is the home directory that the environment names.
"""

# Hundreds of models pass through here within milliseconds; pathlib takes ten times as long.
# ruff: noqa: PTH110, PTH118

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from framework.manifest.document import decode, read_bytes

# The longest templates are some tens of kilobytes.
MAX_TEMPLATE_BYTES = 2**20
FOLDER = "is a folder"


@dataclass
class Files:
    """Resolves paths for one reading of a manifest and remembers what was read besides the TOML files."""

    directory: Path
    environ: Mapping[str, str]
    read: list[Path] = field(default_factory=list)
    """Templates and key files, in order. A change of one of them is a change of the manifest."""
    _real_directories: dict[str, str] = field(default_factory=dict)
    _canonical: dict[str, Path] = field(default_factory=dict)
    _missing: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._base = os.fspath(self.directory)

    def absolute(self, written: str) -> Path:
        """The path that a text means, links not followed."""
        return Path(self._absolute(written))

    def canonical(self, written: str) -> Path:
        """The path that a text means, links resolved as far as that is possible (07 §3.3)."""
        path = self._canonical.get(written)
        if path is None:
            real, is_there = self._real(self._absolute(written))
            path = self._canonical[written] = Path(real)
            if not is_there:
                self._missing.add(written)
        return path

    def exists(self, written: str) -> bool:
        """Whether there is something at the path that a text means."""
        self.canonical(written)
        return written not in self._missing

    def fault(self, written: str) -> str:
        """Why a text names no regular file, as a clause; empty where it does."""
        try:
            mode = os.stat(self.canonical(written)).st_mode  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return "does not exist"
        except OSError as error:
            return f"cannot be read: {(error.strerror or 'unknown error').lower()}"
        if stat.S_ISREG(mode):
            return ""
        return FOLDER if stat.S_ISDIR(mode) else "is no regular file"

    def size_bytes(self, written: str | None) -> int:
        """Size of a file that holds weights; 0 where there is none to look at."""
        try:
            return os.stat(self.canonical(written)).st_size if written else 0  # noqa: PTH116
        except (OSError, ValueError):
            return 0

    def template(self, written: str) -> str:
        """The text of a chat template. Raises `Unreadable`."""
        return self.text(written, MAX_TEMPLATE_BYTES)

    def text(self, written: str, limit_bytes: int) -> str:
        """The text of a small file, which then belongs to the manifest. Raises `Unreadable`."""
        path = self.absolute(written)
        self.read.append(path)
        return decode(read_bytes(path, limit_bytes))

    def _absolute(self, written: str) -> str:
        home = self.environ.get("HOME", "")
        if written.startswith("~/") and home:
            written = os.path.join(home, written[2:])
        return os.path.join(self._base, written)

    def _real(self, path: str) -> tuple[str, bool]:
        """`os.path.realpath`, each directory once (models share them), and whether there is something."""
        directory, name = os.path.split(path)
        if name not in ("", ".", ".."):
            if directory not in self._real_directories:
                self._real_directories[directory] = os.path.realpath(directory)
            path = os.path.join(self._real_directories[directory], name)
            try:
                is_link = stat.S_ISLNK(os.lstat(path).st_mode)
            except OSError:
                return path, False
            if not is_link:
                return path, True
        real = os.path.realpath(path)
        return real, os.path.exists(real)
