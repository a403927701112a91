"""Rows: bounded whatever is written, and read as far as they make sense."""

from __future__ import annotations

import json
from typing import Any

import pytest

from framework.api.shapes import event_json
from framework.telemetry.rows import (
    MESSAGE_LIMIT,
    MOST_TEXTS_BYTES,
    PART_LIMIT_BYTES,
    event_of,
    event_row,
    request_of,
    request_row,
)
from framework.values.reason import Reason
from framework.values.request_record import RequestTexts
from tests.telemetry.samples import NOON, event, record

LONG = "x" * 200_000


def test_an_event_is_bounded_in_every_part() -> None:
    reason = Reason("a_code", LONG, "Do this.", "warning", {"lines": LONG})
    row = event_row(event_json(event(1, message=LONG, model="m" * 5000, reason=reason, data={"a": LONG})))
    assert sum(len(part) for part in row if isinstance(part, str)) < PART_LIMIT_BYTES
    found = event_of(row[:-1])
    assert found is not None
    assert found.message == LONG[:MESSAGE_LIMIT] + "..."
    assert found.reason is not None
    assert (found.reason.code, found.reason.remedy) == ("a_code", "Do this.")
    assert found.data["left_out_bytes"] > len(LONG)


def test_bytes_that_are_no_text_can_be_kept() -> None:
    found = event_of(event_row(event_json(event(1, message="a\udcff", data={"path": "b\udcfe"})))[:-1])
    assert found is not None
    assert (found.message, found.data) == ("a\\xff", {"path": "b\\xfe"})


GOOD = (1, "2026-01-02T12:00:00Z", "state", "chat", 0, "text", None, "{}")


@pytest.mark.parametrize(
    ("place", "value", "is_there"),
    [
        pytest.param(1, "yesterday", False, id="no-time"),
        pytest.param(1, "2026-01-02T12:00:00", False, id="a-time-without-zone"),
        pytest.param(2, 5, False, id="no-kind"),
        pytest.param(5, None, False, id="no-message"),
        pytest.param(3, 5, True, id="no-model"),
        pytest.param(4, "x", True, id="no-replica"),
        pytest.param(6, '{"code": "a"}', True, id="half-a-reason"),
        pytest.param(6, "[" * 100_000, True, id="a-reason-without-end"),
        pytest.param(7, "not json", True, id="no-data"),
        pytest.param(7, b"\x00\x01", True, id="bytes"),
    ],
)
def test_a_row_is_taken_as_far_as_it_makes_sense(place: int, value: object, is_there: bool) -> None:
    row = tuple(value if number == place else part for number, part in enumerate(GOOD))
    found = event_of(row)
    assert (found is not None) is is_there
    if found is not None:
        assert (found.message, found.reason) == ("text", None)


def test_a_request_comes_back_as_it_was() -> None:
    given = record(1, texts="hello", error="cancelled", retried=True)
    _, at, _, _, _, document, _, texts = request_row(given)
    assert request_of((at, document, texts)) == given


def test_texts_that_outgrow_their_bound_in_the_file_are_left_out() -> None:
    texts = RequestTexts({"prompt": "\x00" * MOST_TEXTS_BYTES}, {}, False)
    *_, size, kept = request_row(record(1).__class__(**{**record(1).__dict__, "texts": texts}))
    assert size < 2000
    assert kept == '{"asked":{},"answered":{},"is_cut":true}'


@pytest.mark.parametrize("document", ["{}", "[]", "x", None, b"\xff"])
def test_a_row_that_is_no_request_is_none(document: object) -> None:
    assert request_of((NOON.isoformat(), document, None)) is None


def test_a_request_of_an_earlier_version_has_what_it_had() -> None:
    _, at, _, _, _, document, _, texts = request_row(record(1))
    values = json.loads(document)
    for name in ("prompt_s", "generation_s", "prompt_tokens_per_s", "generation_tokens_per_s"):
        values.pop(name)
    assert request_of((at, json.dumps(values), texts)) == record(1)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"status": "200"}, id="a-text-for-a-number"),
        pytest.param({"total_s": None}, id="null-for-a-number"),
        pytest.param({"generation_tokens_per_s": float("nan")}, id="no-number"),
        pytest.param({"prompt_tokens": 1.5}, id="half-a-token"),
        pytest.param({"retried": 1}, id="a-number-for-a-switch"),
        pytest.param({"model": ["a"]}, id="a-list-for-a-text"),
    ],
)
def test_a_request_that_makes_no_sense_is_none(changed: dict[str, Any]) -> None:
    _, at, _, _, _, document, _, texts = request_row(record(1))
    assert request_of((at, json.dumps({**json.loads(document), **changed}), texts)) is None
