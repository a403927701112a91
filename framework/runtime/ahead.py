"""Plans of models that are not downloaded: made with files of holes, shown as the download would have them.

Called by runtime.planner when a hub source is to be measured before any gigabyte moves (13 §3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from framework.models.companions import choose_drafter, choose_projector
from framework.models.file_names import label
from framework.models.hub.companion import not_fetched
from framework.models.hub.facts import RemoteModel, RepoFile, ResolvedSource, source_text
from framework.models.hub.places import SNAPSHOTS, canonical_repo, repo_folder
from framework.models.hub.sources import HubSources
from framework.models.variants import complete_sets
from framework.planning.memory.remedies import Variant
from framework.planning.speculation.drafter_source import has_drafter_of_its_own
from framework.runtime.fetching import local_files, named_drafter
from framework.values.plan import FitPlan, LaunchPlan, Section
from framework.values.reason import Reason, Refused
from framework.values.request import ModelRequest, ModelSource
from framework.values.units_text import size

# The largest ones that help; a repository may have thirty.
MOST_VARIANTS = 3


@dataclass(frozen=True)
class Remotes:
    """What of a launch is not downloaded, as its headers tell."""

    model: RemoteModel | None = None
    drafter: RemoteModel | None = None

    @property
    def any(self) -> bool:
        """Whether anything is missing."""
        return self.model is not None or self.drafter is not None

    @cached_property
    def smaller_variants(self) -> tuple[Variant, ...]:
        """Other quantisations of the model's repository that are smaller, the largest first."""
        return () if self.model is None else smaller_variants(self.model)

    @cached_property
    def projector(self) -> RepoFile | None:
        """The projector that would be fetched with the model; None where its repository has none."""
        name = None if self.model is None else choose_projector(self.model.listing.paths)
        return None if self.model is None or name is None else self.model.listing.file(name)

    @property
    def projector_bytes(self) -> int:
        """Its size, 0 where there is none."""
        return (self.projector.size_bytes or 0) if self.projector is not None else 0


ALL_HERE = Remotes()


async def find_ahead(
    sources: HubSources, request: ModelRequest, headers_dir: Path
) -> tuple[ResolvedSource, Remotes]:
    """The files of a launch, those that are not here as files of holes. Raises Refused for the model."""
    model: RemoteModel | None = None
    try:
        found = await asyncio.to_thread(local_files, sources, request)
    except Refused:
        if request.source.repo is None:
            raise
        model = await sources.fetch_headers(request.source, headers_dir)
        found = stand_in_source(model)
    drafter = _drafter_to_fetch(request, found, model)
    if drafter is None:
        return found, Remotes(model)
    here = await asyncio.to_thread(sources.find_local, drafter)
    if here is not None:
        return replace(found, drafter=here.main, drafter_notes=here.notes), Remotes(model)
    try:
        remote = await sources.fetch_headers(drafter, headers_dir)
    except Refused as refusal:
        reason = not_fetched("drafter", source_text(drafter), refusal.failure, drafter.repo)
        return replace(found, drafter_notes=(reason,)), Remotes(model)
    return replace(found, drafter=remote.stand_ins[0], drafter_notes=()), Remotes(model, remote)


def stand_in_source(remote: RemoteModel) -> ResolvedSource:
    """The files of holes as if they were the model's."""
    return ResolvedSource(
        remote.source, remote.stand_ins[0], remote.stand_ins, remote.label, remote.listing.revision
    )


def smaller_variants(remote: RemoteModel) -> tuple[Variant, ...]:
    """Other quantisations of the repository that are smaller, the largest first."""
    sizes = {file.path: file.size_bytes for file in remote.listing.files}
    found: dict[str, int] = {}
    for files in complete_sets(remote.listing.paths):
        known = [size_bytes for path in files.paths if (size_bytes := sizes[path]) is not None]
        if len(known) == len(files.paths):  # half a size would promise what is not so
            found[label(files.main) or files.main] = sum(known)
    smaller = [Variant(name, total) for name, total in found.items() if 0 < total < remote.total_bytes]
    return tuple(sorted(smaller, key=lambda variant: -variant.bytes))


def as_downloaded(plan: LaunchPlan, remotes: Remotes, cache: Path) -> LaunchPlan:
    """The plan with the paths that the files will have, and the reasons that they are not there yet."""
    future = {str(remote.stand_ins[0]): str(_future(remote, cache)) for remote in _each(remotes)}

    def named(tokens: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(future.get(token, token) for token in tokens)

    def renamed(section: Section) -> Section:
        return replace(section, tokens=named(section.tokens))

    spec, model = plan.spec, remotes.model
    drafter = None if spec.drafter is None else future.get(spec.drafter, spec.drafter)
    plan = replace(
        plan,
        sections=tuple(map(renamed, plan.sections)),
        spec=replace(spec, block=named(spec.block), drafter=drafter),
        reasons=(*_headers_only(plan, remotes), *plan.reasons),
    )
    if model is None:
        return plan
    main = _future(model, cache)
    return replace(plan, main_gguf=main, file_bytes=model.total_bytes, fit=_few_variants(plan.fit))


def _drafter_to_fetch(
    request: ModelRequest, found: ResolvedSource, model: RemoteModel | None
) -> ModelSource | None:
    """The drafter that a start would fetch; of a model that is here its repository is not asked."""
    if found.drafter is not None:
        return None
    if model is None or not has_drafter_of_its_own(request):
        return named_drafter(request)
    name = choose_drafter(model.listing.paths)
    return None if name is None else ModelSource(repo=model.listing.repo, file=name)


def _each(remotes: Remotes) -> Iterator[RemoteModel]:
    return (remote for remote in (remotes.model, remotes.drafter) if remote is not None)


def _future(remote: RemoteModel, cache: Path) -> Path:
    repo = repo_folder(canonical_repo(cache, remote.listing.repo))
    return cache / repo / SNAPSHOTS / remote.listing.revision / remote.paths[0]


def _few_variants(fit: FitPlan) -> FitPlan:
    variants = [remedy for remedy in fit.remedies if remedy.kind == "variant"][:MOST_VARIANTS]
    kept = tuple(remedy for remedy in fit.remedies if remedy.kind != "variant" or remedy in variants)
    return replace(fit, remedies=kept)


def _headers_only(plan: LaunchPlan, remotes: Remotes) -> Iterator[Reason]:
    """One reason for each source; the projector comes with the model."""
    eyes = remotes.projector if plan.request.projector == "auto" else None
    for remote in _each(remotes):
        is_model = remote is remotes.model
        fetched = f"but {size(remote.fetched_bytes)} of headers" if remote.fetched_bytes else "now"
        known = "" if remote.fetched_bytes else "; its headers were known"
        beside = f", its projector {eyes.path} {size(eyes.size_bytes or 0)}" if is_model and eyes else ""
        yield Reason(
            "headers_only",
            f"Nothing of {source_text(remote.source)} was downloaded {fetched}{known};"
            f" the {'model' if is_model else 'drafter'} has {size(remote.total_bytes)}{beside}.",
            f"`paddock pull {plan.request.id}` downloads it.",
            evidence={
                "fetched_bytes": remote.fetched_bytes,
                "total_bytes": remote.total_bytes,
                "projector_bytes": (eyes.size_bytes or 0) if is_model and eyes else 0,
                "drafts": not is_model,
            },
        )
