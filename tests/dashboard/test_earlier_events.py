"""The events page reaches back into earlier lives of the server, and only what is new arrives live."""

from __future__ import annotations

from pathlib import Path

from tests.dashboard import samples
from tests.dashboard.client import browser, page
from tests.dashboard.fake_system import make_system
from tests.dashboard.test_live import listening
from tests.telemetry.samples import event, life

NUMBER = 2600


def leave_events(folder: Path) -> None:
    """An earlier life with more events than a new one has in memory; one of a hundred is of another kind."""
    with life(folder) as first:
        for number in range(1, NUMBER + 1):
            first.store.keep_event(event(number, "ready" if number % 100 == 0 else "state", "smollm2"))


async def test_older_pages_follow_to_the_first_event_of_all(tmp_path: Path) -> None:
    leave_events(tmp_path)
    seen: list[str] = []
    with life(tmp_path) as second:
        system = make_system(samples.model(), kept=second)
        system.services.events.record("ready", "up again", model="smollm2")
        async with browser(system) as client:
            path = "/events?model=smollm2"
            while path:
                tree = await page(client, path)
                seen += [li.attributes["id"] for li in tree.one(id="event-rows").all("li")]
                path = next((a.attributes["href"] for a in tree.all("a") if a.text == "Older events"), "")
    assert seen == [f"event-{number}" for number in range(NUMBER + 1, 0, -1)]


async def test_a_filtered_page_holds_old_and_new_and_grows_at_its_top(tmp_path: Path) -> None:
    leave_events(tmp_path)
    with life(tmp_path) as second:
        system = make_system(samples.model(), kept=second)
        system.services.events.record("ready", "up again", model="smollm2")
        async with browser(system) as client:
            tree = await page(client, "/events?kind=ready")
        rows = [li.attributes["id"] for li in tree.one(id="event-rows").all("li")]
        expected = [NUMBER + 1, *range(NUMBER, 0, -100)]
        assert rows == [f"event-{number}" for number in expected]
        async with listening(system, {"page": "events", "kind": "ready"}) as stream:
            system.services.events.record("ready", "and again", model="smollm2")
            (grown,) = await stream.next()
    assert grown.attributes["hx-swap-oob"] == "afterbegin:#event-rows"
    assert len(list(grown.all("li"))) == 1
