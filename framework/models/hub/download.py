"""The work of a download process: list a repository, fetch a variant, or its headers alone (02 §9, §10).

Called by hub.worker with one job. Everything here may block.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from framework.models.hub import refusals
from framework.models.hub.choice import choose
from framework.models.hub.client import HubClient
from framework.models.hub.disk import DiskPlan, free_bytes, smallest_that_fits, variant_sizes
from framework.models.hub.facts import RepoFile, RepoListing
from framework.models.hub.lock import repo_lock
from framework.models.hub.pins import write_pin
from framework.models.hub.places import canonical_repo
from framework.models.hub.retries import patient_listing
from framework.models.hub.stand_ins import StandIns
from framework.models.hub.transfer import Transfer
from framework.models.hub.wire import Job, Note
from framework.models.variants import complete_sets
from framework.values.request import ModelSource

Say = Callable[[Note], None]
# Five a second look smooth.
NOTE_EVERY_S = 0.2


def carry_out(job: Job, endpoint: str, say: Say) -> Mapping[str, Any]:
    """The answer to a job, as JSON values. Raises Refused."""
    cache = Path(job.cache_dir)
    client = HubClient(canonical_repo(cache, job.repo), endpoint)
    listing = patient_listing(client, job.patience, time.sleep)
    if job.work == "list":
        return listing_json(listing)
    if job.work == "headers":
        return _stand_in(client, listing, job)
    return Fetch(client, listing, job, say).run()


def listing_json(listing: RepoListing) -> dict[str, Any]:
    """A listing as JSON values."""
    return {"revision": listing.revision, "files": [asdict(file) for file in listing.files]}


def _stand_in(client: HubClient, listing: RepoListing, job: Job) -> Mapping[str, Any]:
    """Files of holes with the headers of the source's files, below `target`."""
    chosen = choose(listing.paths, ModelSource(repo=client.repo, variant=job.variant, file=job.file))
    made = StandIns(client, listing, Path(job.target), job.header_bytes).make(chosen)
    return {**made, "listing": listing_json(listing)}


class Fetch:
    """Brings all files of one source into the cache."""

    def __init__(self, client: HubClient, listing: RepoListing, job: Job, say: Say) -> None:
        self._client = client
        self._listing = listing
        self._cache = Path(job.cache_dir)
        self._variant, self._variant_decides = job.variant, job.file is None
        self._patience = job.patience
        self._chosen = choose(
            listing.paths, ModelSource(repo=client.repo, variant=job.variant, file=job.file)
        )
        self._files = [found for path in self._chosen.paths if (found := listing.file(path)) is not None]
        self._transfer = Transfer(client, self._cache, listing.revision, job.patience)
        self._notes = _Notes(say, self._files)

    def run(self) -> Mapping[str, Any]:
        """Wait for our turn, make sure that it fits, fetch."""
        began_s = time.monotonic()
        repo = self._client.repo
        with repo_lock(self._cache, repo, busy_s=self._patience.busy_s, look=self._watch_other):
            before = self._here_bytes()
            self._check_disk(before)
            paths = []
            for index, file in enumerate(self._files):
                paths.append(self._transfer.fetch(file.path, partial(self._notes.here, index)))
                self._notes.finished(index)
            if self._variant_decides:
                write_pin(self._cache, repo, self._variant, self._chosen.main)
        return {
            "files": [str(path) for path in paths],
            "label": self._chosen.label,
            "revision": self._listing.revision,
            "fetched_bytes": max(0, self._notes.total_bytes - before),
            "elapsed_s": time.monotonic() - began_s,
            "notes": [asdict(note) for note in self._chosen.notes],
        }

    def _watch_other(self) -> int:
        """Another process fetches from the repository: show what comes of our files, count all that comes."""
        self._notes.say(0, self._here_bytes())
        return self._transfer.blobs_bytes()

    def _here_bytes(self) -> int:
        return sum(self._here(file) for file in self._files)

    def _here(self, file: RepoFile) -> int:
        return self._transfer.here_bytes(file.sha256, file.size_bytes or 0)

    def _check_disk(self, here_bytes: int) -> None:
        free = free_bytes(self._cache)
        if free is None:
            return
        plan = DiskPlan(self._notes.total_bytes, here_bytes, free)
        if plan.fits:
            return
        sizes = {file.path: file.size_bytes or 0 for file in self._listing.files}
        sets = {variant.main: variant for variant in complete_sets(self._listing.paths)}
        variants = variant_sizes([variant.paths for variant in sets.values()], sizes, self._cached_bytes)
        other = smallest_that_fits(variants, free_bytes=free, asked_bytes=plan.total_bytes)
        instead = (sets[other.main].label or other.main, other.need_bytes) if other else None
        raise refusals.disk_full(self._client.repo, str(self._cache), plan.need_bytes, free, instead)

    def _cached_bytes(self, path: str) -> int:
        file = self._listing.file(path)
        return self._here(file) if file else 0


class _Notes:
    """Progress over all files: at most so many notes a second, and one at each end of a file."""

    def __init__(self, say: Say, files: list[RepoFile]) -> None:
        self._say = say
        self._names = [file.path for file in files]
        self._sizes = [file.size_bytes or 0 for file in files]
        self._said_s = 0.0
        self.total_bytes = sum(self._sizes)

    def here(self, index: int, file_bytes: int) -> None:
        """So much of a file is here; the files before it are."""
        if time.monotonic() - self._said_s >= NOTE_EVERY_S:
            self.say(index, sum(self._sizes[:index]) + file_bytes)

    def finished(self, index: int) -> None:
        """A file is complete."""
        self.say(index, sum(self._sizes[: index + 1]))

    def say(self, index: int, loaded_bytes: int) -> None:
        """So much of all files is here."""
        self._said_s = time.monotonic()
        self._say(Note(self._names[index], loaded_bytes, self.total_bytes))
