"""Events, requests and stores to try them with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from framework.api.shapes import event_json
from framework.telemetry.store import News, Pace, Store
from framework.telemetry.store_file import FILE_NAME
from framework.telemetry.tables import DEFAULT_BOUNDS, Bounds
from framework.values.event import Event
from framework.values.request_record import RequestRecord, RequestTexts
from tests.support.waiting import wait_until

NOON = datetime(2026, 1, 2, 12, 0, 0, 123000, tzinfo=UTC)
QUICK = Pace(gather_s=0.005, retry_s=0.02)


def event(number: int, kind: str = "state", model: str | None = "chat", **fields: Any) -> Event:
    """An event with this id."""
    return Event(number, NOON, kind, fields.pop("message", f"event {number}"), model, 0, **fields)


def record(number: int, texts: str | None = None, **fields: Any) -> RequestRecord:
    """A finished request; `texts` is what was asked and answered."""
    known: dict[str, Any] = {
        "id": f"req-{number}",
        "at": NOON,
        "route": "/v1/chat/completions",
        "model": "chat",
        "replica": 0,
        "key": "laptop",
        "status": 200,
        "queue_s": 0.25,
        "first_token_s": 0.5,
        "total_s": 2.0,
        "prompt_tokens": 9,
        "cached_tokens": 8,
        "generated_tokens": 4,
        "drafted": None,
        "accepted": None,
        "stop_reason": "stop",
        "error": None,
        "instance": "chat.0@1",
        "stream": True,
    }
    kept = None if texts is None else RequestTexts({"prompt": texts}, {"content": texts}, False)
    return RequestRecord(**{**known, **fields}, texts=kept)


class Life:
    """A store from one start of the manager to its end."""

    def __init__(self, folder: Path, bounds: Bounds = DEFAULT_BOUNDS, pace: Pace = QUICK) -> None:
        self.path = folder / FILE_NAME
        self.store = Store(self.path, event_json, bounds=bounds, pace=pace)
        self.earlier = self.store.open()
        self.news: list[News] = []
        self.store.start(self.news.append)

    def events(self, **query: Any) -> list[Event]:
        """What was written so far."""
        asked = {"model": None, "kind": None, "since": 0, "before": None, "limit": 1000, **query}
        return self.store.find_events(**asked)

    def ids(self, **query: Any) -> list[int]:
        """Their ids."""
        return [found.id for found in self.events(**query)]

    def written(self, number: int) -> None:
        """Wait until this event is in the file."""
        wait_until(lambda: self.ids(since=number - 1, limit=1000)[:1] == [number], what=f"event {number}")

    def until(self, true: Callable[[], object], what: str) -> None:
        """Wait for the thread that writes."""
        wait_until(true, what=what)


@contextmanager
def life(folder: Path, **options: Any) -> Iterator[Life]:
    """One life; its end writes what waits."""
    made = Life(folder, **options)
    try:
        yield made
    finally:
        made.store.close()
