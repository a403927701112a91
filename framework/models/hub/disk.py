"""Whether the files of a variant fit on the disk of the cache, and which variant would (02 §10.3, §11). Pure.

Called by hub.download before a byte is fetched.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DiskPlan:
    """Bytes of all files, of those that are here already (in part, too), missing, and free on the disk."""

    total_bytes: int
    cached_bytes: int
    free_bytes: int

    @property
    def need_bytes(self) -> int:
        """What has to be fetched."""
        return max(0, self.total_bytes - self.cached_bytes)

    @property
    def fits(self) -> bool:
        """Whether it can be fetched."""
        return self.need_bytes <= self.free_bytes


@dataclass(frozen=True)
class FileSetSize:
    """A set of files that make up one variant: its first file, and sizes."""

    main: str
    total_bytes: int
    cached_bytes: int = 0

    @property
    def need_bytes(self) -> int:
        """What would have to be fetched."""
        return max(0, self.total_bytes - self.cached_bytes)


def smallest_that_fits(
    variants: Iterable[FileSetSize], *, free_bytes: int, asked_bytes: int
) -> FileSetSize | None:
    """The variant to use instead of one of `asked_bytes`: the least to fetch, then the largest, then by name.

    Never a larger one: it could break the plan of memory.
    """
    fitting = [v for v in variants if 0 < v.total_bytes < asked_bytes and v.need_bytes <= free_bytes]
    return min(fitting, key=lambda v: (v.need_bytes, -v.total_bytes, v.main), default=None)


def variant_sizes(
    sets: Iterable[Sequence[str]], sizes: Mapping[str, int], cached: Callable[[str], int]
) -> list[FileSetSize]:
    """Sizes of complete sets of paths, each with its first file in front; an unknown size counts as 0."""
    return [
        FileSetSize(paths[0], sum(sizes.get(p, 0) for p in paths), sum(cached(p) for p in paths))
        for paths in sets
        if paths
    ]


def free_bytes(directory: Path) -> int | None:
    """Free space for this user on the disk of a directory, which may not exist yet; None when unknown."""
    for place in (directory, *directory.parents):
        try:
            return shutil.disk_usage(place).free
        except OSError:
            continue
    return None
