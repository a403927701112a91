"""The query of a page's address: what makes no sense is refused with what is allowed, before it is read.

Called by the pages. Fields of a form that were left empty count as absent; what no page reads is let through,
as links from elsewhere carry marks of their own. Raises ApiError, which becomes a page.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.requests import Request

from framework.api.event_routes import MAX_EVENT_ID
from framework.api.inputs import one_of, whole_number
from framework.api.lookup import require_replica
from framework.api.model_routes import MAX_REPLICA
from framework.api.services import Services
from framework.dashboard.pages.events import KINDS
from framework.dashboard.pages.overview import GROUPS
from framework.values.instance import ModelView


def check_overview(request: Request) -> None:
    """`?state=`."""
    _word(request, "state", [key for key, _, _ in GROUPS])


def check_events(request: Request) -> None:
    """`?kind=&before=&since=`; any model may have events, also one that is gone."""
    _word(request, "kind", KINDS)
    _number(request, "before", MAX_EVENT_ID)
    _number(request, "since", MAX_EVENT_ID)


def check_log(request: Request, services: Services, view: ModelView) -> None:
    """`?replica=`, one that the model has."""
    require_replica(services, view, _number(request, "replica", MAX_REPLICA))


def _word(request: Request, name: str, words: Collection[str]) -> None:
    given = request.query_params.get(name, "")
    if given:
        one_of(name, given, words)


def _number(request: Request, name: str, highest: int) -> int:
    if not request.query_params.get(name):
        return 0
    return whole_number(request, name, default=0, low=0, high=highest)
