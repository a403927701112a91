"""What every page handler is given: the running system, the templates, and what pages share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from framework.api.services import Services
from framework.api.sessions import Session
from framework.dashboard.assets import Assets
from framework.dashboard.device_watch import DeviceWatch
from framework.dashboard.request_feed import RequestFeeds
from framework.dashboard.shared_pages import SharedPages
from framework.dashboard.templating import Templates


class OpenStreams:
    """How many live streams are open, of all and of each session; the bounds keep a forgotten script from
    eating the server, or keeping everybody else from it."""

    # Fifty open pages are a busy team; each stream costs a task and what its page shows.
    LIMIT = 128
    # Hidden tabs give theirs back, so that nobody has so many in sight.
    LIMIT_OF_ONE = 64

    def __init__(self) -> None:
        self._open: Counter[Session] = Counter()

    @property
    def count(self) -> int:
        """How many are open."""
        return self._open.total()

    def is_full(self, session: Session) -> bool:
        """Whether another stream of this session must be refused."""
        return self.count >= self.LIMIT or self._open[session] >= self.LIMIT_OF_ONE

    def opened(self, session: Session) -> None:
        """One more."""
        self._open[session] += 1

    def closed(self, session: Session) -> None:
        """One less."""
        self._open[session] -= 1
        self._open += Counter()


@dataclass(frozen=True)
class Desk:
    """Made once with the routes."""

    services: Services
    assets: Assets
    templates: Templates
    devices: DeviceWatch
    streams: OpenStreams
    shared: SharedPages
    feeds: RequestFeeds


def make_desk(services: Services, templates_dir: Path, static_dir: Path) -> Desk:
    """The desk of one server."""
    assets = Assets(static_dir)
    templates = Templates(templates_dir, assets)
    return Desk(
        services,
        assets,
        templates,
        DeviceWatch(services.devices, services.known_devices, services.changes),
        OpenStreams(),
        SharedPages(templates),
        RequestFeeds(services.request_log),
    )
