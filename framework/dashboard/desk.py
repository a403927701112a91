"""What every page handler is given: the running system, the templates, and what pages share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from framework.api.services import Services
from framework.dashboard.assets import Assets
from framework.dashboard.device_watch import DeviceWatch
from framework.dashboard.shared_pages import SharedPages
from framework.dashboard.templating import Templates


class OpenStreams:
    """How many live streams are open; a bound keeps a forgotten script from eating the server."""

    # Fifty open pages are a busy team; each stream costs a task and what its page shows.
    LIMIT = 128

    def __init__(self) -> None:
        self.count = 0

    @property
    def full(self) -> bool:
        """Whether another stream must be refused."""
        return self.count >= self.LIMIT


@dataclass(frozen=True)
class Desk:
    """Made once with the routes."""

    services: Services
    assets: Assets
    templates: Templates
    devices: DeviceWatch
    streams: OpenStreams
    shared: SharedPages


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
    )
