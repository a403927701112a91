"""The past as one open page sees it, of the pools or of a model: drawn anew when something happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from framework.dashboard.charts.timeline import Timeline, timeline
from framework.dashboard.desk import Desk
from framework.dashboard.pages.history import X_TICKS, devices_section
from framework.dashboard.pages.pools_past import PoolsPast
from framework.dashboard.views import RUNNING
from framework.telemetry.events import utc_now
from framework.values.history import STEP_S, STEPS
from framework.values.instance import ModelView

# Enough for an hour of nine models that come and go every minute.
MOST_EVENTS = 5000
ELEMENT = "timeline"


class TimelineView:
    """What was loaded when, of one model or of all; keeps what it drew last, and what of."""

    def __init__(self, desk: Desk, model: str | None = None) -> None:
        self._desk = desk
        self._model = model
        self._drawn: tuple[object, Timeline] | None = None

    def now(self) -> Timeline:
        """As it is now, to the minute."""
        events, end = self._desk.services.events, _end_of_minute(utc_now())
        running = self._running()
        drawn_of = (events.newest_id, end, tuple(running.items()))
        if self._drawn is None or self._drawn[0] != drawn_of:
            begin = end - timedelta(seconds=STEP_S * STEPS)
            found = events.recent(model=self._model, limit=MOST_EVENTS)
            self._drawn = (drawn_of, timeline(ELEMENT, found, running, begin, end, X_TICKS))
        return self._drawn[1]

    def _running(self) -> Mapping[str, frozenset[str]]:
        """Instances that hold memory now, by model."""
        return {
            view.request.id: frozenset(i.instance for i in view.instances if i.state in RUNNING)
            for view in self._views()
        }

    def _views(self) -> Iterable[ModelView]:
        fleet = self._desk.services.fleet
        if self._model is None:
            return fleet.views()
        view = fleet.view(self._model)
        return () if view is None else (view,)


class PoolsPastView:
    """The past of the pools."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._timeline = TimelineView(desk)

    def now(self) -> PoolsPast:
        """As it is now, to the minute."""
        return PoolsPast(devices_section(self._desk.services.history.devices()), self._timeline.now())


def _end_of_minute(now: datetime) -> datetime:
    return now.replace(second=0, microsecond=0) + timedelta(minutes=1)
