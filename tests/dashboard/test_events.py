"""The events page: filter, paging, tones, export."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framework.api.event_kinds import EVENT_KINDS
from framework.dashboard.pages.event_rows import event_row, fact_texts
from framework.dashboard.pages.events import (
    KIND_NAMES,
    KINDS,
    PAGE_ROWS,
    EventQuery,
    cut,
    events_fragments,
    events_page,
    parse_query,
)
from framework.dashboard.updates import Grown, Sent
from framework.telemetry.events import OUTCOMES
from framework.values.reason import Reason
from tests.dashboard import samples
from tests.dashboard.renders import shell

EVENTS = [samples.event(number) for number in range(1, 121)]


def test_all_kinds_can_be_chosen() -> None:
    assert set(KINDS) == {OUTCOMES, *EVENT_KINDS} == set(KIND_NAMES)


def test_the_newest_events_stand_first() -> None:
    page = events_page(shell("events"), EventQuery(), (), EVENTS[:3], older=False)
    assert [row.id for row in page.events.rows] == [3, 2, 1]


def test_a_page_holds_the_newest_and_knows_of_older_ones() -> None:
    found, older = cut(EVENTS, EventQuery())
    assert (found[0].id, found[-1].id, older) == (71, 120, True)


def test_older_events_follow_without_a_gap() -> None:
    first, _ = cut(EVENTS, EventQuery())
    second, older = cut(EVENTS, EventQuery(before=first[0].id))
    assert (second[0].id, second[-1].id, older) == (21, 70, True)


def test_the_last_page_leads_no_further() -> None:
    found, older = cut(EVENTS, EventQuery(before=21))
    assert (len(found), older) == (20, False)


def test_links_keep_the_filter() -> None:
    query = EventQuery(model="a b", kind="state", before=99)
    page = events_page(shell("events"), query, (), EVENTS[:PAGE_ROWS], older=True)
    assert page.older_url == "/events?model=a+b&kind=state&before=1"
    assert page.newest_url == "/events?model=a+b&kind=state"
    assert page.export_url == "/api/v1/events?model=a+b&kind=state&limit=1000"


@pytest.mark.parametrize(
    ("values", "query"),
    [
        pytest.param({}, EventQuery(), id="nothing"),
        pytest.param({"kind": "nonsense"}, EventQuery(), id="unknown-kind"),
        pytest.param({"before": "-1", "since": "x"}, EventQuery(), id="no-numbers"),
        pytest.param({"before": "9" * 40}, EventQuery(), id="absurd-number"),
        pytest.param({"before": "\u0663"}, EventQuery(), id="foreign-digits"),
        pytest.param({"before": "7", "kind": "ready"}, EventQuery(kind="ready", before=7), id="good"),
    ],
)
def test_an_address_that_makes_no_sense_filters_nothing(values: dict[str, str], query: EventQuery) -> None:
    assert parse_query(values) == query


def test_a_new_event_is_sent_alone() -> None:
    page = events_page(shell("events"), EventQuery(), (), EVENTS[:3], older=False)
    sent = Sent()
    sent.remember(events_fragments(page))
    grown = replace(
        page, events=events_page(shell("events"), EventQuery(), (), EVENTS[:4], older=False).events
    )
    (update,) = sent.changes(events_fragments(grown))
    assert isinstance(update, Grown)
    assert [item.id for item in update.items] == [4]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "fields", "tone"),
    [
        ("ready", {}, "ok"),
        ("state", {}, "idle"),
        ("command", {}, "busy"),
        ("crash_loop", {}, "wait"),
        ("start_failed", {"reason": samples.NO_MEMORY}, "bad"),
        ("degraded", {"reason": samples.CONTEXT_CUT}, "wait"),
    ],
)
def test_an_event_looks_as_serious_as_it_is(kind: str, fields: dict[str, object], tone: str) -> None:
    assert event_row(samples.event(1, kind, **fields)).tone == tone


def test_details_carry_units_and_hide_secrets() -> None:
    data = {
        "needed_bytes": 9 * samples.GIB,
        "seconds": 1.84,
        "waited_s": 75,
        "environment": {"MY_KEY": "x"},
        "n": 2,
    }
    assert event_row(samples.event(1, data=data)).data == (
        ("needed", "9 GiB"),
        ("seconds", "1.8 s"),
        ("waited", "1 min 15 s"),
        ("environment", '{"MY_KEY": "<redacted>"}'),
        ("n", "2"),
    )


def test_bytes_by_holder_are_sizes_and_what_is_empty_is_left_out() -> None:
    evidence = {
        "needs_bytes": {"CPU": 61 * samples.MIB, "CUDA0": 0},
        "held_by": {"hand.0@1": {"CPU": samples.GIB}, "c.0@2": {"CPU": samples.MIB, "CUDA0": samples.GIB}},
        "growing_bytes": {"prompt_cache": 8 * samples.GIB},
        "behind": [],
        "pool": None,
        "names": ["a", "b"],
    }
    assert fact_texts(evidence) == (
        ("needs", "CPU 61 MiB"),
        ("held by", "hand.0@1: CPU 1 GiB; c.0@2: CPU 1 MiB, CUDA0 1 GiB"),
        ("growing", "prompt cache 8 GiB"),
        ("names", "a, b"),
    )


def test_a_huge_detail_is_cut() -> None:
    ((_, text),) = event_row(samples.event(1, data={"argv": ["x" * 5000]})).data
    assert len(text) < 700


def test_a_fact_that_the_reason_shows_is_not_shown_twice() -> None:
    reason = Reason("a_code", "No.", evidence={"exit_code": 1, "path": "/a"})
    row = event_row(samples.event(1, reason=reason, data={"exit_code": 1, "path": "/b", "epoch": 2}))
    assert row.data == (("path", "/b"), ("epoch", "2"))


def test_a_reason_that_says_the_same_is_not_said_twice() -> None:
    refused = samples.event(1, "refused", message=samples.NO_MEMORY.message, reason=samples.NO_MEMORY)
    assert event_row(refused).message == ""
