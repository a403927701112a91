"""A manager starts on a disk without room: nothing on the way of a request needs any (01 §2.11)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from framework import state_dir
from tests.support.chaos.small_disk import SmallDisk

ADDRESS, ID = "127.0.0.1:8080", "0123456789abcdef"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with SmallDisk(tmp_path / "state", "64k") as disk:
        yield disk


def test_a_new_token_takes_the_room_of_the_one_that_a_killed_manager_left(disk: SmallDisk) -> None:
    stale = state_dir.new_token(disk.outside)
    disk.fill()
    token = state_dir.new_token(disk.outside)
    assert token != stale
    assert state_dir.read_token(disk.outside) == token


def test_what_found_no_room_is_written_when_there_is_some(
    disk: SmallDisk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.fill()
    with state_dir.hold(disk.outside):
        token, made = state_dir.new_token(disk.outside), state_dir.identity(disk.outside)
        state_dir.record_listener(disk.outside, ADDRESS)
        assert state_dir.read_token(disk.outside) is None
        assert "Commands cannot find or reach this server" in caplog.text
        with pytest.raises(state_dir.StateDirError, match="No space left"):
            state_dir.keep(disk.outside, token, ADDRESS, made)
        # A try that failed leaves nothing, or many of them would.
        assert {path.name for path in disk.outside.iterdir()} == {"ballast", "lock"}
        disk.free()
        state_dir.keep(disk.outside, token, ADDRESS, made)
    assert state_dir.read_token(disk.outside) == token
    assert state_dir.read_listener(disk.outside) == ADDRESS
    assert state_dir.identity(disk.outside) == made


def test_a_token_of_an_earlier_life_does_not_stay(disk: SmallDisk) -> None:
    state_dir.new_token(disk.outside)
    state_dir.keep(disk.outside, "the-token-of-this-life", ADDRESS, ID)
    assert state_dir.read_token(disk.outside) == "the-token-of-this-life"


def test_a_directory_that_cannot_be_written_for_another_reason_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "token").mkdir()
    with pytest.raises(state_dir.StateDirError, match="token"):
        state_dir.new_token(tmp_path / "state")
