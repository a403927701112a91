"""What was loaded when, from events that may be missing at either end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from framework.dashboard.charts.timeline import LONGEST_NAME, MOST_LANES, Timeline, timeline
from framework.values.event import Event
from tests.dashboard import samples
from tests.dashboard.history_samples import BEGIN, END, moments


def event(kind: str, minute: float, model: str = "a", **data: Any) -> Event:
    at = BEGIN + timedelta(minutes=minute)
    return samples.event(1, kind, model=model, at=at, data={"instance": f"{model}.0@1", **data})


def drawn(*events: Event, **running: frozenset[str]) -> Timeline:
    return timeline("t", events, running, BEGIN, END, ())


def spans(picture: Timeline) -> list[tuple[str, float, float]]:
    """Look, begin and end of each span, in minutes."""
    return [
        (one.look, round(one.start_share * 60, 2), round((one.start_share + one.width_share) * 60, 2))
        for lane in picture.lanes
        for one in lane.spans
    ]


@pytest.mark.parametrize(
    ("events", "running", "expected"),
    [
        pytest.param((event("ready", 10), event("stopped", 20)), (), [("loaded", 10, 20)], id="both-ends"),
        pytest.param((event("ready", 10),), ("a.0@1",), [("loaded", 10, 60)], id="still-loaded"),
        pytest.param((), ("a.0@1",), [("loaded", 0, 60)], id="loaded-for-longer-than-is-remembered"),
        pytest.param((event("ready", -30), event("stopped", 6)), (), [("loaded", 0, 6)], id="from-before"),
        pytest.param((event("ready", -30), event("stopped", -10)), (), [], id="over-before"),
        pytest.param(
            (event("ready", 10, seconds=120), event("exited", 12)),
            (),
            [("loading", 8, 10), ("loaded", 10, 12)],
            id="the-load-before-it",
        ),
        pytest.param((event("stopped", 5),), (), [], id="an-end-without-a-beginning"),
        pytest.param((event("ready", 5, seconds="x"),), ("a.0@1",), [("loaded", 5, 60)], id="no-number"),
    ],
)
def test_a_model_is_loaded_from_its_start_to_its_end(
    events: tuple[Event, ...], running: tuple[str, ...], expected: list[tuple[str, float, float]]
) -> None:
    assert spans(drawn(*events, a=frozenset(running))) == expected


def test_what_happened_is_marked_told_and_listed() -> None:
    picture = drawn(*moments())
    (lane,) = picture.lanes
    assert [mark.label for mark in lane.marks] == [
        "had to make room",
        "unloaded",
        "start failed",
        "its process ended by itself",
    ]
    assert picture.description.startswith("smollm2: loaded for 35 % of the time, had to make room")
    assert [moment.what for moment in picture.moments][:2] == ["its process ended by itself", "loaded"]


def test_a_process_whose_place_another_one_has_was_replaced() -> None:
    picture = drawn(
        event("ready", 10),
        event("ready", 20, instance="a.0@2"),
        event("stopped", 21),
        a=frozenset({"a.0@2"}),
    )
    assert [moment.what for moment in picture.moments] == ["replaced", "loaded", "loaded"]
    assert spans(picture) == [("loaded", 10, 21), ("loaded", 20, 60)]


def test_the_models_that_moved_last_come_first_and_the_rest_is_counted() -> None:
    events = [event("ready", n, f"m{n}") for n in range(MOST_LANES + 5)]
    running = {f"m{n}": frozenset({f"m{n}.0@1"}) for n in range(MOST_LANES + 5)}
    picture = timeline("t", events, running, BEGIN, END, ())
    assert (len(picture.lanes), picture.left_out) == (MOST_LANES, 5)
    quiet = timeline("t", [event("refused", 3, "late")], {}, BEGIN, END, ())
    assert [lane.model for lane in quiet.lanes] == ["late"]


def test_a_long_name_is_cut_in_the_picture_and_whole_in_the_table() -> None:
    picture = drawn(event("start_failed", 3, "x" * 200))
    assert len(picture.lanes[0].model) == LONGEST_NAME + 1
    assert picture.moments[0].model == "x" * 200


def test_nothing_is_an_empty_picture() -> None:
    assert drawn().lanes == ()
