"""Everything that explains a difference, with the edits of the manifest that may help. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from framework.dashboard.pages.manifest import MANIFEST, way_form
from framework.dashboard.urls import with_query
from framework.planning.reason_edits import ways_for
from framework.values.plan import LaunchPlan
from framework.values.reason import Reason
from framework.values.request import ModelRequest

# The mildest two; the page behind the link has all of them, tried on the planner.
MOST_OFFERS = 2


@dataclass(frozen=True)
class EditOffer:
    """A remedy that is an edit of the manifest; `form` is what its button sends."""

    model: str
    sentence: str
    form: str


@dataclass(frozen=True)
class ReasonList:
    """Everything that explains a difference between asked, granted and running, worst first."""

    id: str
    reasons: tuple[Reason, ...]
    offers: tuple[tuple[EditOffer, ...], ...]
    """For each reason, in their order."""
    ways_url: str
    """Where the planner says what each edit would give; empty where no reason offers one."""
    detail: str
    is_loaded: bool
    """Whether there is anything that could differ."""


def reason_list(
    element: str,
    reasons: Sequence[Reason],
    request: ModelRequest,
    plan: LaunchPlan | None,
    *,
    detail: str,
    is_loaded: bool,
) -> ReasonList:
    """The reasons of a model with what its manifest could say instead."""
    offers = tuple(_offers(reason, request, plan) for reason in reasons)
    url = ways_url(request.id) if any(offers) else ""
    return ReasonList(element, tuple(reasons), offers, url, detail, is_loaded)


def ways_url(model: str) -> str:
    """The page of what could be changed for a model."""
    return with_query(f"{MANIFEST}/remedies", {"model": model})


def _offers(reason: Reason, request: ModelRequest, plan: LaunchPlan | None) -> tuple[EditOffer, ...]:
    ways = ways_for(reason, request, plan)[:MOST_OFFERS]
    return tuple(EditOffer(request.id, way.sentence, way_form(way)) for way in ways)
