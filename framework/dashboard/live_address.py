"""The address of a page's stream, and what of the page stands in it. For pages and sources of streams."""

from __future__ import annotations

from framework.dashboard.desk import Desk
from framework.dashboard.pages.shell import banner_fragment, banner_of
from framework.dashboard.updates import Fragment
from framework.dashboard.urls import with_query
from framework.runtime.logs import LogBuffer

LIVE = "/live"
MILLISECONDS = 1000


def tag_now(desk: Desk, log: LogBuffer | None = None) -> str:
    """What a page was rendered from: this run of the server, its changes, the lines of its log."""
    services = desk.services
    run = int(services.started_at.timestamp() * MILLISECONDS)
    return f"{run:x}-{services.changes.version}-{log.newest if log is not None else 0}"


def live_url(page: str, tag: str, **values: object) -> str:
    """The address of the stream that keeps a page up to date."""
    return with_query(LIVE, {"page": page, **values, "have": tag})


def banner_now(desk: Desk) -> Fragment:
    """What is wrong with the manifest."""
    return banner_fragment(banner_of(desk.services.current))
