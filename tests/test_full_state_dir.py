"""A manager starts on a disk without room: nothing on the way of a request needs any (01 §2.11)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from framework import state_dir
from tests.support.chaos.small_disk import FileLimit, Room, small_disk

ADDRESS, ID = "127.0.0.1:8080", "0123456789abcdef"


@dataclass(frozen=True)
class Place:
    """A state directory, and what makes it full."""

    directory: Path
    room: Room
    is_disk: bool


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with small_disk(tmp_path / "state", "64k") as disk:
        if disk is not None:
            yield Place(disk.outside, disk, True)
            return
        limit = FileLimit(os.getpid())
        yield Place(tmp_path / "state", limit, False)
        limit.free()


def test_a_new_token_takes_the_room_of_the_one_that_a_killed_manager_left(place: Place) -> None:
    stale = state_dir.new_token(place.directory)
    place.room.fill()
    token = state_dir.new_token(place.directory)
    assert token != stale
    assert state_dir.read_token(place.directory) == (token if place.is_disk else None)


def test_what_found_no_room_is_written_when_there_is_some(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.room.fill()
    with state_dir.hold(place.directory) as held:
        token, made = state_dir.new_token(place.directory), state_dir.identity(place.directory)
        state_dir.record_listener(place.directory, ADDRESS)
        assert state_dir.read_token(place.directory) is None
        assert "Commands cannot find or reach this server" in caplog.text
        assert "Cannot write" in held.keep(token, ADDRESS, made)
        # A try that failed leaves nothing, or many of them would.
        assert {path.name for path in place.directory.iterdir()} <= {"ballast", "lock"}
        place.room.free()
        assert held.keep(token, ADDRESS, made) == ""
    assert state_dir.read_token(place.directory) == token
    assert state_dir.read_listener(place.directory) == ADDRESS
    assert state_dir.identity(place.directory) == made


def test_a_token_of_an_earlier_life_does_not_stay(place: Place) -> None:
    state_dir.new_token(place.directory)
    with state_dir.hold(place.directory) as held:
        assert held.keep("the-token-of-this-life", ADDRESS, ID) == ""
    assert state_dir.read_token(place.directory) == "the-token-of-this-life"


def test_a_directory_that_cannot_be_written_for_another_reason_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "token").mkdir()
    with pytest.raises(state_dir.StateDirError, match="token"):
        state_dir.new_token(tmp_path / "state")
