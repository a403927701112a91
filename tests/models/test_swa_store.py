"""Window patterns on disk (02 §5.7)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from framework.models.swa_store import FILE_NAME, PatternStore


def test_what_is_put_is_there_for_the_next_process(tmp_path: Path) -> None:
    store = PatternStore(tmp_path)
    store.put("b", 3)
    store.put("a", (True, False))
    assert PatternStore(tmp_path).all() == {"a": [True, False], "b": 3}
    assert (tmp_path / FILE_NAME).read_text().startswith('{\n  "a"')
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000, b'{"a": true, "b": "text", "c": 0, "d": {}}'],
    ids=["empty", "cut", "list", "bytes", "deep", "no patterns"],
)
def test_a_damaged_file_holds_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(data)
    assert PatternStore(tmp_path).all() == {}


def test_a_byte_order_mark_is_tolerated(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"\xef\xbb\xbf" + json.dumps({"a": 2}).encode())
    assert PatternStore(tmp_path).all() == {"a": 2}


def test_where_nothing_can_be_written_memory_serves(tmp_path: Path) -> None:
    store = PatternStore(tmp_path / "gone")
    store.put("a", 2)
    assert store.all() == {"a": 2}
