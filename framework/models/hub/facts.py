"""The values of the hub package: listings, plans for the disk, what was fetched and what is in the cache."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from framework.values.reason import Reason
from framework.values.request import ModelSource


@dataclass(frozen=True)
class RepoFile:
    """A file of a repository. `size_bytes` is None where the hub does not say; `sha256` is of the content."""

    path: str
    size_bytes: int | None
    sha256: str | None = None


@dataclass(frozen=True)
class RepoListing:
    """All files of a repository at one commit."""

    repo: str
    revision: str
    files: tuple[RepoFile, ...]

    @property
    def paths(self) -> list[str]:
        """Names of the files."""
        return [file.path for file in self.files]

    def file(self, path: str) -> RepoFile | None:
        """The file of this name."""
        return self._by_path.get(path)

    @cached_property
    def _by_path(self) -> dict[str, RepoFile]:
        return {file.path: file for file in self.files}


@dataclass(frozen=True)
class ResolvedSource:
    """The local files of a source, ready for an engine. `files` holds `main` first, then the other shards."""

    source: ModelSource
    main: Path
    files: tuple[Path, ...]
    label: str | None = None
    """Quantisation label of what was chosen."""
    revision: str | None = None
    from_cache: bool = True
    fetched_bytes: int = 0
    elapsed_s: float = 0.0
    projector: Path | None = None
    """Of the same repository, where it was asked for and is here."""
    notes: tuple[Reason, ...] = ()
    """What is worth knowing about the choice."""
    drafter: Path | None = None
    """Of a hub, where it was asked for and is here; the first file of a set."""
    drafter_source: ModelSource | None = None
    """What the policy names, where that is of a hub; None where the drafter is of the model's repository."""
    drafter_notes: tuple[Reason, ...] = ()
    """Why there is no drafter."""


@dataclass(frozen=True)
class RemoteModel:
    """A model that is not downloaded, and the files of holes that stand in for its own, main one first."""

    source: ModelSource
    listing: RepoListing
    label: str | None
    paths: tuple[str, ...]
    """Names of the files in the repository."""
    stand_ins: tuple[Path, ...]
    total_bytes: int
    """Of the real files together."""
    fetched_bytes: int
    """What the headers took this time; 0 when they were known."""


def hub_text(found: ResolvedSource) -> str:
    """What of the files is of a hub, as the manifest writes it; empty where all are of this machine."""
    sources = (found.source, found.drafter_source)
    return " and ".join(source_text(source) for source in sources if source is not None and source.repo)


def source_text(source: ModelSource) -> str:
    """A source as the manifest writes it."""
    if source.path is not None:
        return str(source.path)
    if source.file:
        return f"hf:{source.repo}/{source.file}"
    return f"hf:{source.repo}:{source.variant}" if source.variant else f"hf:{source.repo}"
