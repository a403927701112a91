"""The store: what is kept outlives the manager, within bounds, and what fails reaches nobody else."""

from __future__ import annotations

import os
import resource
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from framework.telemetry.store import Pace
from framework.telemetry.store_file import VERSION
from framework.telemetry.tables import RESERVED_IDS, SEED_EVENTS, SEED_PER_MODEL, Bounds
from framework.values.reason import Reason
from tests.telemetry.samples import NOON, Life, event, life, record

SMALL = Bounds(events=50, requests=20, file_bytes=2 * 2**20)


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def set_aside(folder: Path) -> list[Path]:
    """The renamed files, without what accompanies them."""
    return sorted(p for p in folder.glob("*.aside-*") if not p.name.endswith(("-wal", "-shm")))


def test_what_was_kept_is_there_in_the_next_life_with_all_its_parts(tmp_path: Path) -> None:
    reason = Reason("no_memory", "No room.", "Free some.", "error", {"needed_bytes": 5})
    kept = event(1, "refused", reason=reason, data={"class": "no_memory", "argv": ["a", "--api-key", "x"]})
    with life(tmp_path) as first:
        first.store.keep_event(kept)
    with life(tmp_path) as second:
        (found,) = second.events()
        assert second.earlier.events == (found,)
    assert (found.id, found.at, found.kind, found.model, found.replica) == (1, NOON, "refused", "chat", 0)
    assert found.reason == reason
    assert found.data == {"class": "no_memory", "argv": ["a", "--api-key", "<redacted>"]}


def test_ids_go_on_after_an_end_in_order(tmp_path: Path) -> None:
    with life(tmp_path) as first:
        assert (first.earlier.next_id, first.earlier.ended) == (1, None)
        first.store.keep_event(event(7))
    with life(tmp_path) as second:
        assert (second.earlier.next_id, second.earlier.ended) == (8, "in order")


def test_after_a_kill_ids_begin_above_all_that_may_have_been_told(tmp_path: Path) -> None:
    first = Life(tmp_path)
    first.store.keep_event(event(7))
    first.written(7)
    # Nobody closes it: what the file holds now is what a kill leaves.
    with closing(sqlite3.connect(tmp_path / "copy")) as copy, closing(sqlite3.connect(first.path)) as left:
        left.backup(copy)
    first.store.close()
    (tmp_path / "copy").replace(first.path)
    with life(tmp_path) as second:
        assert second.earlier.next_id == 8 + RESERVED_IDS
        assert second.earlier.ended == "killed"
        assert second.ids() == [7]


def test_a_new_life_has_the_newest_events_and_the_last_of_each_model(tmp_path: Path) -> None:
    with life(tmp_path) as first:
        for number in range(1, 31):
            first.store.keep_event(event(number, model="quiet"))
        for number in range(31, 31 + SEED_EVENTS):
            first.store.keep_event(event(number, model="loud"))
    with life(tmp_path) as second:
        ids = [found.id for found in second.earlier.events]
    assert ids == [*range(31 - SEED_PER_MODEL, 31), *range(31, 31 + SEED_EVENTS)]
    assert second.earlier.complete_above == 30


def test_events_are_found_by_model_kind_and_place(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        for number in range(1, 9):
            kind, model = ("ready", "state")[number % 2], ("a", "b", None)[number % 3]
            one.store.keep_event(event(number, kind, model))
        one.written(8)
        assert one.ids(model="a") == [3, 6]
        assert one.ids(kind="ready") == [2, 4, 6, 8]
        assert one.ids(model="a", kind="ready") == [6]
        assert one.ids(since=2, before=7, limit=3) == [4, 5, 6]


def test_requests_are_found_with_texts_only_by_their_id(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        for number in range(1, 5):
            key = ("laptop", "desk")[number % 2]
            one.store.keep_request(record(number, texts=f"text {number}", key=key))
        one.until(lambda: len(one.store.find_requests(limit=9)) == 4, "four requests")
        assert [kept.record.id for kept in one.store.find_requests(key="desk", limit=9)] == ["req-1", "req-3"]
        assert [kept.record.texts for kept in one.store.find_requests(limit=2)] == [None, None]
        (found,) = one.store.find_requests(request_id="req-2")
    assert found.record == record(2, texts="text 2", key="laptop")


def test_only_the_newest_entries_are_kept(tmp_path: Path) -> None:
    with life(tmp_path, bounds=SMALL) as one:
        for number in range(1, 131):
            one.store.keep_event(event(number))
            one.store.keep_request(record(number))
        one.written(130)
        assert one.ids() == list(range(81, 131))
        assert [kept.record.id for kept in one.store.find_requests(limit=99)] == [
            f"req-{number}" for number in range(111, 131)
        ]


def test_the_file_stays_below_its_size_and_texts_do_not_push_events_out(tmp_path: Path) -> None:
    bounds = Bounds(events=10_000, requests=10_000, file_bytes=24 * 2**20)
    largest = 0
    with life(tmp_path, bounds=bounds) as one:
        for number in range(1, 601):
            one.store.keep_event(event(number, data={"detail": "e" * 1000}))
            one.store.keep_request(record(number, texts="t" * 30_000))
            if number % 20 == 0:
                one.written(number)
                largest = max(largest, sum(path.stat().st_size for path in tmp_path.iterdir()))
        events, requests = one.ids(limit=10_000), one.store.find_requests(limit=10_000)
    assert largest <= bounds.file_bytes
    assert events == list(range(1, 601))
    assert 0 < len(requests) < 600
    assert requests[-1].record.id == "req-600"


def test_texts_that_are_not_wanted_any_more_leave_no_trace(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        for number in range(1, 101):
            one.store.keep_request(record(number, texts="a secret of somebody " * 500))
        one.until(lambda: len(one.store.find_requests(limit=999)) == 100, "the requests")
        assert any(b"a secret of somebody" in path.read_bytes() for path in tmp_path.iterdir())
        one.store.erase_texts()
        one.store.keep_event(event(1))
        one.written(1)
        one.until(
            lambda: not any(b"a secret of somebody" in path.read_bytes() for path in tmp_path.iterdir()),
            "the texts to go",
        )
        (found,) = one.store.find_requests(request_id="req-1")
        assert found.record.texts is None
        assert found.record.prompt_tokens == 9


def test_a_reader_that_stays_holds_up_no_event(tmp_path: Path) -> None:
    with life(tmp_path, pace=Pace(gather_s=0.005, retry_s=0.02, busy_s=0.05)) as one:
        one.store.keep_request(record(1, texts="a secret of somebody"))
        one.until(lambda: one.store.find_requests(), "the request")
        with closing(sqlite3.connect(one.path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM requests").fetchone() == (1,)
            one.store.erase_texts()
            for number in range(1, 4):
                one.store.keep_event(event(number))
                one.written(number)
            assert one.news == []
        one.until(
            lambda: not any(b"a secret of somebody" in path.read_bytes() for path in tmp_path.iterdir()),
            "the text to go",
        )


def test_a_full_disk_is_told_once_and_everything_is_written_when_there_is_room(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        one.store.keep_event(event(1))
        one.written(1)
        with files_of_at_most(one.path.stat().st_size):
            for number in range(2, 300):
                one.store.keep_event(event(number, data={"detail": "x" * 1000}))
            one.until(lambda: one.news, "the news")
            for number in range(300, 320):
                one.store.keep_event(event(number))
            fault = one.store.trouble
            assert fault is not None
            assert (fault.code, one.news[0].reason) == ("event_log_unwritable", fault)
            assert str(one.path) in fault.message
            assert "Free space" in fault.remedy
        one.written(319)
        one.until(lambda: len(one.news) == 2, "the good news")
        assert one.ids() == list(range(1, 320))
    assert one.store.trouble is None
    assert [news.reason is None for news in one.news] == [False, True]
    assert "nothing was lost" in one.news[1].message


def test_a_disk_that_is_full_at_the_start_costs_no_event_of_before(tmp_path: Path) -> None:
    with life(tmp_path) as first:
        for number in range(1, 11):
            first.store.keep_event(event(number))
    with files_of_at_most(1000):
        second = Life(tmp_path)
        number = second.earlier.next_id
        assert number > 10
        second.store.keep_event(event(number))
        second.until(lambda: second.store.trouble, "the trouble")
    second.written(number)
    assert second.ids() == [*range(1, 11), number]
    second.store.close()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: b"no database at all " * 100, id="other-content"),
        pytest.param(lambda data: data[:5000], id="cut-off"),
        pytest.param(lambda data: data[:8192] + bytes(8192) + data[16384:], id="a-hole"),
    ],
)
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    first = Life(tmp_path)
    for number in range(1, 301):
        first.store.keep_event(event(number, data={"detail": "x" * 200}))
    first.written(300)
    first.store.close()
    with closing(sqlite3.connect(first.path)) as opened, opened:
        opened.execute("UPDATE meta SET value = 0 WHERE name = 'clean'")
    whole = first.path.read_bytes()
    first.path.write_bytes(damage(whole))
    with life(tmp_path) as second:
        # Whoever saw an id of before must not miss what comes now.
        assert second.earlier.next_id > 300
        second.store.keep_event(event(second.earlier.next_id))
        second.written(second.earlier.next_id)
        (news,) = second.news
    (aside,) = set_aside(tmp_path)
    assert aside.read_bytes() == damage(whole)
    assert news.reason is not None
    assert news.reason.code == "event_log_set_aside"
    assert aside.name in news.message
    assert news.reason.evidence == {"path": str(aside)}


def test_damage_that_comes_while_it_runs_is_met_in_the_same_way(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        for number in range(1, 301):
            one.store.keep_event(event(number, data={"detail": "x" * 500}))
        one.written(300)
        with closing(sqlite3.connect(one.path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with one.path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (one.path.stat().st_size - 4096))
        for number in range(301, 311):
            one.store.keep_event(event(number))
        one.until(lambda: set_aside(tmp_path), "the damaged file to be set aside")
        one.until(lambda: one.ids(since=300) == list(range(301, 311)), "the events after it")
        assert one.store.trouble is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(
            f"PRAGMA user_version = {VERSION + 1}", f"version {VERSION + 1}", id="of-a-later-version"
        ),
        pytest.param("PRAGMA application_id = 7", "not a file of Paddock", id="of-another-program"),
        pytest.param("DROP TABLE requests", "lacks a part", id="without-a-table"),
    ],
)
def test_a_file_of_another_version_is_kept_for_it(tmp_path: Path, change: str, told: str) -> None:
    with life(tmp_path) as first:
        first.store.keep_event(event(5))
    with closing(sqlite3.connect(first.path)) as opened:
        opened.execute(change)
    with life(tmp_path) as second:
        assert second.ids() == []
        assert told in second.news[0].message
    (aside,) = set_aside(tmp_path)
    with closing(sqlite3.connect(aside)) as opened:
        assert opened.execute("SELECT id FROM events").fetchall() == [(5,)]


def test_files_set_aside_do_not_pile_up(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / "paddock.sqlite").write_bytes(b"junk" * 1000 + bytes([number]))
        with life(tmp_path) as one:
            one.store.keep_event(event(one.earlier.next_id))
        one.path.unlink()
    assert [path.read_bytes()[-1] for path in set_aside(tmp_path)] == [3, 4, 5]


def test_a_link_to_somebody_elses_file_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("not ours")
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "paddock.sqlite").symlink_to(target)
    with life(folder) as one:
        one.store.keep_event(event(1))
        one.written(1)
    assert target.read_text() == "not ours"
    assert stat.S_ISREG((folder / "paddock.sqlite").lstat().st_mode)


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    with life(tmp_path) as first:
        first.store.keep_event(event(1))
    first.path.chmod(0o644)
    old = os.umask(0)
    try:
        with life(tmp_path) as one:
            one.store.keep_event(event(2))
            one.written(2)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(old)
    assert set(modes.values()) == {0o600}
    assert len(modes) == 3


def test_a_file_that_somebody_deletes_is_begun_again(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        one.store.keep_event(event(1))
        one.written(1)
        one.path.unlink()
        one.store.keep_event(event(2))
        one.until(lambda: one.ids() == [2], "the second event")
        assert one.news == []


def test_entries_wait_while_another_program_holds_the_file(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        one.store.keep_event(event(1))
        one.written(1)
        with closing(sqlite3.connect(one.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            one.store.keep_event(event(2))
            assert one.ids() == [1]
            other.execute("ROLLBACK")
        one.written(2)
        assert one.news == []


def test_an_event_that_cannot_be_shown_is_kept_without_its_details(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with life(tmp_path) as one:
        one.store.keep_event(event(1, data={"number": 2**70, "bad": b"bytes"}))
        one.store.keep_event(event(2, data={1: {"a": {object()}}}))  # type: ignore[dict-item]
        one.written(2)
        assert one.ids() == [1, 2]
