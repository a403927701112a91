"""The projector or drafter of a repository for a model of it: one beside it, else a download (02 §12.1).

Best effort: whatever goes wrong is a reason, and the model runs without. Called where a model that has its
own files wants its companion, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from framework.models.hub.facts import ResolvedSource
from framework.models.hub.places import file_below, gguf_files, snapshot_of, snapshots
from framework.models.hub.sources import HubSources, OnProgress
from framework.values.reason import Reason, Refused
from framework.values.request import ModelSource

Choose = Callable[[Iterable[str]], str | None]
"""models.companions.choose_projector or choose_drafter."""


@dataclass(frozen=True)
class Companion:
    """A companion's file, or why there is none; neither where the repository offers none."""

    path: Path | None = None
    reason: Reason | None = None


async def resolve_companion(
    sources: HubSources, model: ResolvedSource, choose: Choose, progress: OnProgress
) -> Companion:
    """The companion of a fetched model. Never raises Refused."""
    repo = model.source.repo
    if repo is None:
        return Companion()
    beside = await asyncio.to_thread(_beside, model.main, choose)
    if beside is not None:
        return Companion(beside)
    try:
        listing = await sources.list_repo(repo)
    except Refused as refusal:
        cached = await asyncio.to_thread(_anywhere, sources.cache, repo, choose)
        return Companion(cached, None if cached else _reason(refusal, repo))
    name = choose(listing.paths)
    if name is None:
        # What the repository no longer offers, but a cache still has, belongs to other weights.
        return Companion()
    try:
        found = await sources.resolve_source(ModelSource(repo=repo, file=name), progress)
    except Refused as refusal:
        return Companion(None, _reason(refusal, repo))
    return Companion(found.main)


def _beside(main: Path, choose: Choose) -> Path | None:
    snapshot = snapshot_of(main)
    return _in_snapshot(snapshot, choose) if snapshot is not None else None


def _anywhere(cache: Path, repo: str, choose: Choose) -> Path | None:
    return next((path for one in snapshots(cache, repo) if (path := _in_snapshot(one, choose))), None)


def _in_snapshot(snapshot: Path, choose: Choose) -> Path | None:
    name = choose(gguf_files(snapshot))
    return file_below(snapshot, name) if name is not None else None


def _reason(refusal: Refused, repo: str) -> Reason:
    reason = refusal.failure.reason
    return Reason(
        "companion_not_fetched",
        f"What belongs to the model in {repo} could not be fetched, and it runs without: {reason.message}",
        reason.remedy,
        "warning",
        {"repo": repo, "cause": reason.code},
    )
