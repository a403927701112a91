"""From a model's source to local files: the cache first, else a download that all share (02 §9, §10).

Called by runtime.planner and by the command `pull`. Belongs to one event loop; whatever blocks runs in
threads or in a download process.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from framework.models.hub import refusals
from framework.models.hub.cached import find_cached
from framework.models.hub.facts import (
    RemoteModel,
    RepoFile,
    RepoListing,
    ResolvedSource,
    source_text,
)
from framework.models.hub.mode import hub_mode
from framework.models.hub.places import cache_dir
from framework.models.hub.process import run_job
from framework.models.hub.progress import FetchProgress
from framework.models.hub.wire import Job, Note, Patience, Work
from framework.models.sparse_header import FIRST_PART_BYTES
from framework.values.instance import LoadProgress
from framework.values.reason import Reason
from framework.values.request import ModelSource

# More at once share the same line, and each ends later than it would have.
DOWNLOADS_AT_ONCE = 2

OnProgress = Callable[[LoadProgress], None]


def _ignore(_: object) -> None:
    """Nobody watches."""


class HubSources:
    """Resolves sources with the cache and the tokens of one environment."""

    def __init__(self, environ: Mapping[str, str], *, patience: Patience | None = None) -> None:
        self._environ = environ
        self._patience = patience or Patience()
        self._shares: dict[tuple[str, str, str], _Share] = {}
        self._repos: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._turns = asyncio.Semaphore(DOWNLOADS_AT_ONCE)

    @property
    def cache(self) -> Path:
        """Directory of the cache."""
        return cache_dir(self._environ)

    def find_local(self, source: ModelSource) -> ResolvedSource | None:
        """The files of a source as far as they are on this machine; asks nobody. Blocking."""
        if source.path is not None:
            return ResolvedSource(source, source.path, (source.path,))
        return find_cached(self.cache, source)

    def require_local(self, source: ModelSource) -> ResolvedSource:
        """As `find_local`; raises Refused with `model_missing` for what is not downloaded yet. Blocking."""
        found = self.find_local(source)
        if found is None:
            raise refusals.not_here(source_text(source))
        return found

    async def resolve_source(self, source: ModelSource, progress: OnProgress = _ignore) -> ResolvedSource:
        """The local files, fetched where they are missing. Raises Refused.

        `progress` is called on the event loop. A download ends when the last one who waits for it is
        cancelled; the next one goes on where it stopped.
        """
        found = await asyncio.to_thread(self.find_local, source)
        if found is not None:
            return found
        await self._require_network(source_text(source))
        key = ((source.repo or "").strip().lower(), (source.variant or "").lower(), source.file or "")
        share = self._shares.get(key)
        if share is None:
            share = self._shares[key] = _Share(
                lambda say: self._fetch(source, say), lambda gone: self._forget(key, gone)
            )
        return await share.join(progress)

    def _forget(self, key: tuple[str, str, str], share: _Share) -> None:
        if self._shares.get(key) is share:
            del self._shares[key]

    async def list_repo(self, repo: str) -> RepoListing:
        """All files of a repository. Raises Refused."""
        await self._require_network(f"the list of {repo}")
        return _listing(repo, await self._run(self._job("list", ModelSource(repo=repo))))

    async def fetch_headers(
        self, source: ModelSource, target: Path, *, first_part_bytes: int = FIRST_PART_BYTES
    ) -> RemoteModel:
        """Headers of the files of a source, by range requests, in stand-ins below `target`.

        Nothing goes into the cache of the hub. Raises Refused.
        """
        await self._require_network(source_text(source))
        job = replace(self._job("headers", source), header_bytes=first_part_bytes, target=str(target))
        answer = await self._run(job)
        return RemoteModel(
            source,
            _listing(source.repo or "", answer["listing"]),
            answer["label"],
            tuple(answer["paths"]),
            tuple(Path(path) for path in answer["files"]),
            sum(answer["sizes"]),
            answer["fetched_bytes"],
        )

    async def _require_network(self, what: str) -> None:
        mode = await asyncio.to_thread(hub_mode, self._environ)
        if mode.offline:
            raise refusals.offline(what, mode.detail)

    async def _fetch(self, source: ModelSource, say: OnProgress) -> ResolvedSource:
        seen = FetchProgress()
        job = self._job("fetch", source)
        # One at a time of a repository, as over all processes; those that wait take up no place.
        async with self._repos[(source.repo or "").lower()], self._turns:
            answer = await self._run(job, lambda note: say(seen.of(note)))
        paths = tuple(Path(path) for path in answer["files"])
        fetched = int(answer["fetched_bytes"])
        return ResolvedSource(
            source,
            paths[0],
            paths,
            answer["label"],
            answer["revision"],
            from_cache=fetched == 0,
            fetched_bytes=fetched,
            elapsed_s=float(answer["elapsed_s"]),
            notes=tuple(Reason(**note) for note in answer["notes"]),
        )

    def _job(self, work: Work, source: ModelSource) -> Job:
        return Job(
            work, source.repo or "", str(self.cache), source.variant, source.file, patience=self._patience
        )

    async def _run(self, job: Job, on_note: Callable[[Note], None] = _ignore) -> Mapping[str, Any]:
        return await run_job(job, self._environ, on_note)


def _listing(repo: str, answer: Mapping[str, Any]) -> RepoListing:
    return RepoListing(repo, answer["revision"], tuple(RepoFile(**file) for file in answer["files"]))


class _Share:
    """One download and all who wait for it."""

    def __init__(
        self,
        fetch: Callable[[OnProgress], Coroutine[Any, Any, ResolvedSource]],
        on_over: Callable[[_Share], None],
    ) -> None:
        self._listeners: list[OnProgress] = []
        self._last: LoadProgress | None = None
        self._on_over = on_over
        self._task = asyncio.create_task(fetch(self._tell), name="download")
        self._task.add_done_callback(lambda _: on_over(self))

    async def join(self, listener: OnProgress) -> ResolvedSource:
        """Wait with the others; the last one to leave ends the download."""
        self._listeners.append(listener)
        if self._last is not None:
            listener(self._last)
        try:
            return await asyncio.shield(self._task)
        finally:
            self._listeners.remove(listener)
            if not self._listeners and not self._task.done():
                # Whoever comes from now on starts a download of their own.
                self._on_over(self)
                self._task.cancel()
                await asyncio.wait({self._task})

    def _tell(self, progress: LoadProgress) -> None:
        self._last = progress
        for listener in tuple(self._listeners):
            listener(progress)
