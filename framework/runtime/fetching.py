"""The files of a launch and what belongs to them, fetched or as far as they are here (02 §10, §12; 05 §5.6).

Called by runtime.planner and by the command `pull`, so that both get the same files.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from framework.models.file_names import names_gemma_4
from framework.models.hub import refusals
from framework.models.hub.companion import (
    DRAFTER,
    PROJECTOR,
    with_cached,
    with_companion,
    with_named_drafter,
)
from framework.models.hub.facts import ResolvedSource, source_text
from framework.models.hub.pins import ask_again, is_known_to_lack
from framework.models.hub.sources import HubSources, OnProgress
from framework.planning.speculation.drafter_source import has_drafter_of_its_own, takes_drafter
from framework.values.reason import Reason
from framework.values.request import ModelRequest, ModelSource


def hub_sources(request: ModelRequest) -> tuple[ModelSource, ...]:
    """What of a request has to be fetched by name: its model, its drafter, both or nothing."""
    drafter = named_drafter(request)
    return tuple(source for source in (request.source, drafter) if source is not None and source.repo)


def named_drafter(request: ModelRequest) -> ModelSource | None:
    """The hub source of the drafter that its policy names; None for a path, and where nobody loads it."""
    drafter = request.spec.drafter
    return drafter if drafter is not None and drafter.repo is not None and takes_drafter(request) else None


async def fetch_files(
    sources: HubSources, request: ModelRequest, progress: OnProgress, *, by_command: bool = False
) -> ResolvedSource:
    """The files on this machine; downloads what is missing. Raises Refused for the model alone.

    `by_command` also asks for what the model's repository was found to lack lately.
    """
    found = await sources.resolve_source(request.source, progress)
    if by_command:
        await asyncio.to_thread(ask_again, found.main)
    if request.projector == "auto":
        found = await with_companion(PROJECTOR, sources, found, progress)
    drafter = named_drafter(request)
    if drafter is not None:
        return await with_named_drafter(sources, found, drafter, progress)
    if has_drafter_of_its_own(request):
        expected = expects_drafter(request, found)
        return await with_companion(DRAFTER, sources, found, progress, is_expected=expected)
    return found


def local_files(sources: HubSources, request: ModelRequest) -> ResolvedSource:
    """The files as far as they are here; asks nobody. Blocking. Raises Refused, naming what is missing."""
    found = sources.find_local(request.source)
    drafter = named_drafter(request)
    local_drafter = None if drafter is None else sources.find_local(drafter)
    if found is None:
        wanted = [request.source, *([drafter] if drafter is not None and local_drafter is None else [])]
        missing = dict.fromkeys(map(source_text, wanted))
        raise refusals.not_here(" and ".join(missing), count=len(missing))
    if request.projector == "auto":
        found = with_cached(PROJECTOR, sources, found)
    if drafter is not None:
        found = replace(found, drafter_source=drafter)
        if local_drafter is None:
            return replace(found, drafter_notes=(_not_here(request, source_text(drafter)),))
        return replace(found, drafter=local_drafter.main, drafter_notes=local_drafter.notes)
    return _with_cached_drafter(sources, request, found) if has_drafter_of_its_own(request) else found


def expects_drafter(request: ModelRequest, found: ResolvedSource) -> bool:
    """Whether its repository should have a drafter: one is asked for, or the family drafts with one."""
    return request.spec.mode != "auto" or names_gemma_4(found.source.repo or "", found.main.name)


def _with_cached_drafter(sources: HubSources, request: ModelRequest, found: ResolvedSource) -> ResolvedSource:
    cached = with_cached(DRAFTER, sources, found)
    is_open = cached.drafter is None and not is_known_to_lack(found.main, DRAFTER.name)
    if is_open and expects_drafter(request, found):
        return replace(cached, drafter_notes=(_not_here(request, f"of the repository {found.source.repo}"),))
    return cached


def _not_here(request: ModelRequest, which: str) -> Reason:
    return Reason(
        "drafter_not_downloaded",
        f"The drafter {which} is not downloaded yet; the next start looks for it and fetches it.",
        f"`paddock pull {request.id}` fetches it now.",
        evidence={"drafter": which},
    )
