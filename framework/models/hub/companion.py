"""The projector of a repository for a model of it: one beside it, else a download (02 §12.1).

Best effort: whatever goes wrong is a note, and the model runs without. Called by runtime.planner and by the
command `pull` once the model's own files are here.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from framework.models.companions import choose_projector
from framework.models.hub.facts import ResolvedSource
from framework.models.hub.pins import lacks_projector, note_no_projector
from framework.models.hub.places import file_below, gguf_files, snapshot_of, snapshots
from framework.models.hub.sources import HubSources, OnProgress
from framework.values.reason import Reason, Refused
from framework.values.request import ModelSource


async def with_projector(sources: HubSources, model: ResolvedSource, progress: OnProgress) -> ResolvedSource:
    """A model whose files are here, with its projector where its repository offers one. Never raises Refused.

    A model of this machine is returned as it is: what stands beside it is looked at when it is planned.
    """
    repo = model.source.repo
    if repo is None:
        return model
    beside = await asyncio.to_thread(_beside, model.main)
    if beside is not None:
        return replace(model, projector=beside)
    if await asyncio.to_thread(lacks_projector, model.main):
        return model
    try:
        return await _fetched(sources, model, repo, progress)
    except Refused as refusal:
        cached = await asyncio.to_thread(with_cached_projector, sources, model)
        if cached.projector is not None:
            return cached
        return replace(model, notes=(*model.notes, _not_fetched(refusal, repo)))


def with_cached_projector(sources: HubSources, model: ResolvedSource) -> ResolvedSource:
    """A model with the projector that a start would find, as far as it is here; asks nobody. Blocking."""
    repo = model.source.repo
    if repo is None or lacks_projector(model.main):
        return model
    return replace(model, projector=_beside(model.main) or _anywhere(sources.cache, repo))


async def _fetched(
    sources: HubSources, model: ResolvedSource, repo: str, progress: OnProgress
) -> ResolvedSource:
    name = choose_projector((await sources.list_repo(repo)).paths)
    if name is None:
        # What the repository no longer offers, but a cache still has, belongs to other weights.
        await asyncio.to_thread(note_no_projector, model.main)
        return model
    found = await sources.resolve_source(ModelSource(repo=repo, file=name), progress)
    return replace(
        model,
        projector=found.main,
        from_cache=model.from_cache and found.from_cache,
        fetched_bytes=model.fetched_bytes + found.fetched_bytes,
        elapsed_s=model.elapsed_s + found.elapsed_s,
    )


def _beside(main: Path) -> Path | None:
    snapshot = snapshot_of(main)
    return None if snapshot is None else _in_snapshot(snapshot)


def _anywhere(cache: Path, repo: str) -> Path | None:
    return next((path for one in snapshots(cache, repo) if (path := _in_snapshot(one))), None)


def _in_snapshot(snapshot: Path) -> Path | None:
    name = choose_projector(gguf_files(snapshot))
    return file_below(snapshot, name) if name is not None else None


def _not_fetched(refusal: Refused, repo: str) -> Reason:
    reason = refusal.failure.reason
    return Reason(
        "companion_not_fetched",
        f"The projector of the model in {repo} could not be fetched, and it runs without: {reason.message}",
        reason.remedy,
        "warning",
        {"repo": repo, "cause": reason.code},
    )
