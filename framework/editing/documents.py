"""The files of a manifest as texts that people edit. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from framework.manifest.document import BYTE_ORDER_MARK
from framework.manifest.load import Loaded


@dataclass(frozen=True)
class ManifestFile:
    """One file that can be edited: the manifest itself, or one that it includes. Problems call it `name`."""

    name: str
    path: Path
    raw: bytes

    @property
    def sha256(self) -> str:
        """What an edit of it is based on."""
        return digest_of(self.raw)

    @property
    def text(self) -> str:
        """What it holds, for people: without byte order mark, lines end in `\\n`."""
        text = self.raw.decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK)
        return text.replace("\r\n", "\n")


def digest_of(raw: bytes) -> str:
    """SHA-256 of what a file holds, as hex."""
    return hashlib.sha256(raw).hexdigest()


def files_of(loaded: Loaded) -> tuple[ManifestFile, ...]:
    """The files that a reading went through, the manifest first."""
    # What is read besides, such as templates, comes behind them in `files`.
    return tuple(
        ManifestFile(name, path, raw)
        for (name, raw), path in zip(loaded.sources.items(), loaded.files, strict=False)
    )


def written_as(text: str, before: bytes) -> bytes:
    """A text of a form as the file has it: with the line ends of the file, and its byte order mark."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    if before.count(b"\r\n") * 2 > before.count(b"\n"):
        plain = plain.replace("\n", "\r\n")
    mark = BYTE_ORDER_MARK if before.startswith(BYTE_ORDER_MARK.encode()) else ""
    return (mark + plain).encode("utf-8", "surrogatepass")
