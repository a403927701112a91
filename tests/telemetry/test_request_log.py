"""The request log: as much of each request as the mode says, live, and over lives of the manager."""

from __future__ import annotations

from pathlib import Path

from framework.telemetry.request_log import RequestFilter, RequestLog
from framework.values.request_record import RequestLogMode
from tests.telemetry.samples import Life, life, record


def log_of(one: Life, mode: RequestLogMode) -> RequestLog:
    log = RequestLog(one.store)
    log.adopt(mode)
    return log


async def left(folder: Path) -> dict[str, str | None]:
    """What a later life finds: ids, and what was asked of those with texts."""
    with life(folder) as later:
        log = RequestLog(later.store)
        found = [await log.find(one.record.id) for one in await log.recent()]
        texts = [(one.record.id, one.record.texts) for one in found if one is not None]
        return {name: None if text is None else text.asked["prompt"] for name, text in texts}


async def test_off_keeps_nothing(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        log_of(one, "off").keep(record(1, texts="hello"))
    assert await left(tmp_path) == {}


async def test_metadata_keeps_numbers_and_no_text(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        log_of(one, "metadata").keep(record(1, texts="hello of somebody"))
    assert await left(tmp_path) == {"req-1": None}
    assert b"hello of somebody" not in one.path.read_bytes()


async def test_full_keeps_texts(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        log_of(one, "full").keep(record(1, texts="hello"))
    assert await left(tmp_path) == {"req-1": "hello"}


async def test_a_changed_mode_acts_on_the_next_request_and_takes_texts_back(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        log = log_of(one, "full")
        log.keep(record(1, texts="one"))
        log.adopt("metadata")
        log.keep(record(2, texts="two"))
        log.adopt("off")
        log.keep(record(3, texts="three"))
        log.adopt("full")
        log.keep(record(4, texts="four"))
    assert await left(tmp_path) == {"req-1": None, "req-2": None, "req-4": "four"}


async def test_texts_of_an_earlier_life_go_with_the_mode_too(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        log_of(one, "full").keep(record(1, texts="one of before"))
    with life(tmp_path) as two:
        log_of(two, "metadata")
    assert await left(tmp_path) == {"req-1": None}
    assert not any(b"one of before" in path.read_bytes() for path in tmp_path.iterdir())


async def test_pages_follow_each_other_without_a_gap(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        log = log_of(one, "metadata")
        for number in range(1, 11):
            log.keep(record(number, model="a" if number % 2 else "b"))
    with life(tmp_path) as later:
        log = RequestLog(later.store)
        newest = await log.recent(limit=4)
        before = await log.recent(limit=4, before=newest[0].seq)
        of_a = await log.recent(RequestFilter(model="a"), limit=100)
    assert [one.record.id for one in before + newest] == [f"req-{n}" for n in range(3, 11)]
    assert [one.record.id for one in of_a] == [f"req-{n}" for n in range(1, 11, 2)]


async def test_without_a_store_nothing_is_kept() -> None:
    log = RequestLog()
    log.adopt("full")
    log.keep(record(1))
    assert await log.recent() == []
    assert await log.find("req-1") is None
