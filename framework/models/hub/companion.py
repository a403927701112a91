"""What belongs to a model of a repository: one beside it, else a download (02 §12.1, §12.5; 05 §5.6).

Best effort: whatever goes wrong is a note, and the model runs without. Called by runtime.fetching once the
model's own files are here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from framework.models.companions import choose_drafter, choose_projector
from framework.models.hub import refusals
from framework.models.hub.facts import ResolvedSource, source_text
from framework.models.hub.pins import forget_none, is_known_to_lack, lacked_lately, note_none
from framework.models.hub.places import file_below, gguf_files, snapshot_of, snapshots
from framework.models.hub.sources import HubSources, OnProgress
from framework.values.reason import Failure, Reason, Refused
from framework.values.request import ModelSource

log = logging.getLogger(__name__)

# A model that is here must not wait long to learn what else there is; less for what most repositories lack.
PATIENCE_S = 20.0
SHORT_PATIENCE_S = 5.0


@dataclass(frozen=True)
class Kind:
    """A sort of companion: how people call it, and which file of a repository it is."""

    name: Literal["projector", "drafter"]
    choose: Callable[[Iterable[str]], str | None]
    patience_s: float | None
    """Time for the listing of its repository; None leaves it to the download."""

    def of(self, model: ResolvedSource) -> Path | None:
        """The one that was found for a model."""
        return model.projector if self.name == "projector" else model.drafter


PROJECTOR = Kind("projector", choose_projector, None)
DRAFTER = Kind("drafter", choose_drafter, PATIENCE_S)


async def with_companion(
    kind: Kind,
    sources: HubSources,
    model: ResolvedSource,
    progress: OnProgress,
    *,
    is_expected: bool = True,
) -> ResolvedSource:
    """A model whose files are here, with its companion where its repository offers one. Never raises Refused.

    A model of this machine is returned as it is: what stands beside it is looked at when it is planned. One
    that is not `is_expected`, or was not there before, is not worth a long wait, nor a word when the hub
    cannot be asked.
    """
    repo = model.source.repo
    if repo is None:
        return model
    beside = await asyncio.to_thread(_beside, kind, model.main)
    if beside is not None:
        return _attached(kind, model, beside)
    if await asyncio.to_thread(lacked_lately, model.main, kind.name):
        return model
    is_expected = is_expected and not await asyncio.to_thread(is_known_to_lack, model.main, kind.name)
    try:
        patience_s = kind.patience_s if is_expected else SHORT_PATIENCE_S
        name = await _offered(kind, sources, model, repo, patience_s)
        if name is None:
            return model
        is_expected = True  # it is there: why it cannot be had is worth a word
        found = await sources.resolve_source(ModelSource(repo=repo, file=name), progress)
        return _attached(kind, _fetched_too(model, found), found.main)
    except Refused as refusal:
        cached = await asyncio.to_thread(with_cached, kind, sources, model)
        if kind.of(cached) is not None:
            return cached
        if not is_expected:
            log.info("whether %s has a %s is not known: %s", repo, kind.name, refusal)
            return model
        return _noted(kind, model, not_fetched(kind.name, f"of the model in {repo}", refusal.failure, repo))


def with_cached(kind: Kind, sources: HubSources, model: ResolvedSource) -> ResolvedSource:
    """A model with the companion that a start would find, as far as it is here; asks nobody. Blocking."""
    repo = model.source.repo
    if repo is None or is_known_to_lack(model.main, kind.name):
        return model
    found = _beside(kind, model.main) or _anywhere(kind, sources.cache, repo)
    return model if found is None else _attached(kind, model, found)


async def with_named_drafter(
    sources: HubSources, model: ResolvedSource, drafter: ModelSource, progress: OnProgress
) -> ResolvedSource:
    """A model with the drafter that its policy names, fetched like a model. Never raises Refused."""
    model = replace(model, drafter_source=drafter)
    try:
        found = await sources.resolve_source(drafter, progress)
    except Refused as refusal:
        reason = not_fetched("drafter", source_text(drafter), refusal.failure, drafter.repo)
        return _noted(DRAFTER, model, reason)
    return replace(_fetched_too(model, found), drafter=found.main, drafter_notes=found.notes)


def not_fetched(what: str, which: str, failure: Failure, repo: str | None) -> Reason:
    """The reason for a companion that could not be had; the model runs without it."""
    reason = failure.reason
    return Reason(
        "companion_not_fetched",
        f"The {what} {which} could not be fetched, and the model runs without: {reason.message}",
        reason.remedy,
        "warning",
        {"repo": repo, "cause": reason.code},
    )


async def _offered(
    kind: Kind, sources: HubSources, model: ResolvedSource, repo: str, patience_s: float | None
) -> str | None:
    """The companion's file by the repository's listing. Raises Refused, also when `patience_s` are over."""
    try:
        async with asyncio.timeout(patience_s):
            name = kind.choose((await sources.list_repo(repo)).paths)
    except TimeoutError:
        raise refusals.hub_error(repo, f"its listing did not come within {patience_s:.0f} s") from None
    if name is None:
        # What the repository no longer offers, but a cache still has, belongs to other weights.
        await asyncio.to_thread(note_none, model.main, kind.name)
    else:
        await asyncio.to_thread(forget_none, model.main, kind.name)
    return name


def _fetched_too(model: ResolvedSource, found: ResolvedSource) -> ResolvedSource:
    """A model with what its companion took counted in."""
    return replace(
        model,
        from_cache=model.from_cache and found.from_cache,
        fetched_bytes=model.fetched_bytes + found.fetched_bytes,
        elapsed_s=model.elapsed_s + found.elapsed_s,
    )


def _attached(kind: Kind, model: ResolvedSource, path: Path) -> ResolvedSource:
    return replace(model, projector=path) if kind.name == "projector" else replace(model, drafter=path)


def _noted(kind: Kind, model: ResolvedSource, reason: Reason) -> ResolvedSource:
    if kind.name == "projector":
        return replace(model, notes=(*model.notes, reason))
    return replace(model, drafter_notes=(*model.drafter_notes, reason))


def _beside(kind: Kind, main: Path) -> Path | None:
    snapshot = snapshot_of(main)
    return None if snapshot is None else _in_snapshot(kind, snapshot)


def _anywhere(kind: Kind, cache: Path, repo: str) -> Path | None:
    return next((path for one in snapshots(cache, repo) if (path := _in_snapshot(kind, one))), None)


def _in_snapshot(kind: Kind, snapshot: Path) -> Path | None:
    name = kind.choose(gguf_files(snapshot))
    return file_below(snapshot, name) if name is not None else None
