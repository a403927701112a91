"""Stand-ins for the files of a source that is not downloaded: their headers, and holes behind (13 §3).

Called by hub.download. Fetches of each file what its header and tensor directory need, by range requests, and
nothing at all of what is already stood in for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework.models.hub import refusals
from framework.models.hub.client import HubClient
from framework.models.hub.facts import RepoListing
from framework.models.sparse_header import FIRST_PART_BYTES, NotSparse, SparseHeaders, read_part
from framework.models.variants import VariantFiles

# Later files of a set have no vocabulary, only the names of their tensors.
LATER_PART_BYTES = 2**20


@dataclass
class StandIns:
    """Makes the stand-ins of one source below a directory; `fetched_bytes` counts what that took."""

    client: HubClient
    listing: RepoListing
    root: Path
    first_part_bytes: int = FIRST_PART_BYTES
    fetched_bytes: int = 0

    def make(self, chosen: VariantFiles) -> Mapping[str, Any]:
        """The answer of the job, as JSON values. Raises Refused."""
        made = [self._one(path, later=index > 0) for index, path in enumerate(chosen.paths)]
        return {
            "label": chosen.label,
            "paths": list(chosen.paths),
            "files": [str(path) for path, _ in made],
            "sizes": [size for _, size in made],
            "fetched_bytes": self.fetched_bytes,
        }

    def _one(self, file: str, *, later: bool) -> tuple[Path, int]:
        headers, repo, revision = SparseHeaders(self.root), self.client.repo, self.listing.revision
        listed = self.listing.file(file)
        try:
            if listed is not None and listed.size_bytes is not None:
                found = headers.find(repo, revision, file, listed.size_bytes)
                if found is not None:
                    return found, listed.size_bytes
            data, total = self._header(file, later=later)
            return headers.write(repo, revision, file, data, total), total
        except NotSparse as fault:
            raise refusals.no_header(repo, file, str(fault)) from fault
        except OSError as error:
            raise refusals.stand_in_unwritable(str(self.root), error.strerror or str(error)) from error

    def _header(self, file: str, *, later: bool) -> tuple[bytes, int]:
        """The first bytes of a file, as many as its header needs, and its whole size."""
        wanted = min(self.first_part_bytes, LATER_PART_BYTES) if later else self.first_part_bytes
        while True:
            data, total = self.client.first_bytes(file, self.listing.revision, wanted)
            self.fetched_bytes += len(data)
            more = read_part(data, total).next_bytes
            if more is None or more <= len(data) or len(data) < wanted:
                return data, total
            wanted = more
