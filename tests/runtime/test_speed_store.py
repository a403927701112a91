"""Speeds on disk: found again for the same launch, never believed when they are not plainly ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.planning.speculation.profit import Tally
from framework.runtime.speed_store import FOLDER, Place, SpeedStore, decode, encode, plain

KEY = "a" * 40
SUMS = {
    Place("ngram-mod", "b" * 40, 2): Tally(25, 2500.0, 100.5, 500.0, 10.0),
    plain(2): Tally(30, 3000.0, 90.0, 0.0, 0.0),
}


@pytest.fixture
def store(tmp_path: Path) -> SpeedStore:
    (tmp_path / "state").mkdir(mode=0o700)
    made = SpeedStore(tmp_path / "state")
    made.keep(KEY, SUMS)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / FOLDER / f"{KEY}.json"


def test_what_was_kept_is_found_in_its_order(store: SpeedStore) -> None:
    assert list(store.find(KEY).items()) == list(SUMS.items())
    assert store.find("c" * 40) == {}


def test_the_next_manager_finds_it(store: SpeedStore, tmp_path: Path) -> None:
    assert SpeedStore(tmp_path / "state").find(KEY) == SUMS


def test_without_a_directory_nothing_is_kept() -> None:
    store = SpeedStore()
    store.keep(KEY, SUMS)
    assert store.find(KEY) == {}


def test_the_file_is_private(store: SpeedStore, path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_state_directory_that_cannot_be_written_costs_only_the_memory(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    store = SpeedStore(tmp_path / "state")
    store.keep(KEY, SUMS)
    assert store.find(KEY) == {}


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.write_bytes(b"\xff\x00{"), id="no text"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:-5]), id="cut off"),
        pytest.param(lambda path: path.write_bytes(b"[" * 60_000), id="deeply nested"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes() + b" " * 2**17), id="too long"),
        pytest.param(lambda path: path.chmod(0o644), id="others may read it"),
        pytest.param(lambda path: path.parent.chmod(0o755), id="others may enter"),
    ],
)
def test_what_is_not_plainly_ours_and_whole_is_no_measurement(
    store: SpeedStore, path: Path, damage: Callable[[Path], object]
) -> None:
    damage(path)
    assert store.find(KEY) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("requests", -1, id="negative"),
        pytest.param("requests", True, id="no number"),
        pytest.param("tokens", float("inf"), id="without end"),
        pytest.param("seconds", -0.5, id="negative time"),
        pytest.param("drafted", "5", id="text for a number"),
        pytest.param("running", 5, id="number for a text"),
        pytest.param("running", "x" * 1000, id="a long text"),
        pytest.param("running", "a\nb", id="a text of two lines"),
        pytest.param("busy_slots", 0, id="no slots"),
        pytest.param("busy_slots", 10**9, id="more slots than there are"),
    ],
)
def test_one_wrong_value_spoils_the_file(name: str, value: Any) -> None:
    document = json.loads(encode(SUMS))
    document["cells"][0][name] = value
    assert decode(json.dumps(document).encode()) == {}


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_garbage_is_no_measurement(data: bytes) -> None:
    assert decode(data) == {}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_other_json_in_the_place_of_sums_is_read_without_a_fault(value: Any) -> None:
    assert decode(json.dumps({"format": 1, "cells": value}).encode()) == {}


def test_of_too_many_the_newest_are_kept() -> None:
    sums = {plain(slots): Tally(1, 1.0, 1.0) for slots in range(1, 1000)}
    assert plain(999) in decode(encode(sums))
    assert plain(1) not in decode(encode(sums))


def test_a_folder_that_others_may_enter_is_not_used_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = tmp_path / "state"
    (state / "speeds").mkdir(mode=0o755, parents=True)
    state.chmod(0o755)
    SpeedStore(state).keep("launch", {plain(1): Tally(1, 10.0, 1.0)})
    assert "are not kept" in caplog.text
