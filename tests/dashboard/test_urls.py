"""Addresses of pages."""

from __future__ import annotations

import pytest

from framework.dashboard.urls import model_url, url_part, with_query


@pytest.mark.parametrize("name", ["a/b", "a:b", "50%", "a?b#c", "ü", ".", "a b"])
def test_a_name_becomes_one_segment_of_an_address(name: str) -> None:
    part = url_part(name)
    assert not set(part) & set("/?#: ")


def test_a_name_with_slashes_and_colons_has_one_page() -> None:
    assert model_url("org/model:q4%") == "/models/org%2Fmodel%3Aq4%25"


def test_empty_values_leave_no_trace_in_an_address() -> None:
    assert with_query("/events", {"model": "a b", "kind": "", "before": None}) == "/events?model=a+b"
