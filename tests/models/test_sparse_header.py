"""Headers of files that are not here, and the files of holes that stand in for them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.models import sparse_header
from framework.models.gguf_tensors import read_tensors
from framework.models.sparse_header import NotSparse, SparseHeaders, read_part, write_sparse
from tests.models.gguf_bytes import ARRAY, STRING, U32, Array, Tensor, gguf, pair

GIB = 2**30
TENSORS = tuple(Tensor(f"blk.{n}.w", (1024, 1024), 0, n * 4 * 2**20) for n in range(40))
HEAD = gguf(
    pair("general.architecture", STRING, "llama"),
    pair("llama.block_count", U32, 40),
    pair("tokenizer.ggml.tokens", ARRAY, Array(STRING, tuple(f"token {n}" for n in range(3000)))),
    pair("tokenizer.ggml.merges", ARRAY, Array(STRING, tuple(f"t {n}" for n in range(3000)))),
    tensors=TENSORS,
)
TOTAL = len(HEAD) + 40 * 4 * 2**20


def test_enough_bytes_give_the_facts_of_the_whole_file() -> None:
    part = read_part(HEAD, TOTAL)
    assert (part.complete, part.next_bytes) == (True, None)
    assert (part.result.header.n_layers, len(part.result.tensors)) == (40, 40)


@given(st.integers(24, len(HEAD) - 1))
def test_asking_for_more_ends_after_a_few_rounds(first: int) -> None:
    have, rounds = first, 0
    while (part := read_part(HEAD[:have], TOTAL)).next_bytes is not None:
        assert have < part.next_bytes <= TOTAL
        have, rounds = part.next_bytes, rounds + 1
    assert part.complete
    assert rounds < 5


def test_more_is_asked_for_in_one_go_when_the_vocabulary_is_long() -> None:
    part = read_part(HEAD[:5000], TOTAL)
    assert part.next_bytes is not None
    assert part.next_bytes >= len(HEAD)


@pytest.mark.parametrize(
    ("data", "total", "status"),
    [
        pytest.param(b"<html>not found</html>", GIB, "not_gguf", id="another file"),
        pytest.param(HEAD[:100], 100, "truncated", id="all there is"),
        pytest.param(HEAD, TOTAL - 1, "truncated", id="too small for its tensors"),
        pytest.param(HEAD[:4], 3, "truncated", id="a size that is no size"),
        pytest.param(b"", 0, "not_gguf", id="nothing"),
    ],
)
def test_where_more_would_not_help_no_more_is_asked_for(data: bytes, total: int, status: str) -> None:
    part = read_part(data, total)
    assert (part.complete, part.next_bytes, part.result.status) == (False, None, status)


def test_a_header_beyond_all_measure_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_header, "READ_BUDGET_BYTES", 2000)
    part = read_part(HEAD[:2000], TOTAL)
    assert (part.next_bytes, part.result.status) == (None, "corrupt")


@given(st.integers(0, len(HEAD)), st.integers(0, 2**62), st.binary(max_size=20))
def test_any_part_with_any_size_can_be_asked_about(length: int, total: int, tail: bytes) -> None:
    read_part(HEAD[:length] + tail, total)


def test_a_stand_in_reads_as_the_real_file(tmp_path: Path) -> None:
    path = SparseHeaders(tmp_path).write("o/r", "abc", "sub/m.gguf", HEAD, TOTAL)
    found = read_tensors(path)
    assert (found.status, found.tensors) == ("ok", read_part(HEAD, TOTAL).result.tensors)
    assert path.name == "m.gguf"
    assert path.stat().st_size == TOTAL
    assert path.stat().st_blocks * 512 < 2**20
    assert [entry.name for entry in path.parent.iterdir()] == ["m.gguf"]


def test_only_the_header_is_kept_of_what_was_fetched(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write_sparse(path, HEAD + b"\xff" * 4096, TOTAL)
    with path.open("rb") as file:
        file.seek(len(HEAD))
        assert file.read(4096) == bytes(4096)


def test_files_of_one_set_lie_together_and_revisions_apart(tmp_path: Path) -> None:
    headers = SparseHeaders(tmp_path)
    first, second = (headers.path("o/r", "abc", f"Q8/m-0000{n}-of-00002.gguf") for n in (1, 2))
    assert first.parent == second.parent
    assert headers.path("o/r", "def", "Q8/m-00001-of-00002.gguf").parent != first.parent
    assert headers.path("o/r", "abc", "m-00001-of-00002.gguf").parent != first.parent


def test_a_stand_in_is_found_again_unless_the_size_changed(tmp_path: Path) -> None:
    headers = SparseHeaders(tmp_path)
    assert headers.find("o/r", "abc", "m.gguf", TOTAL) is None
    path = headers.write("o/r", "abc", "m.gguf", HEAD, TOTAL)
    assert headers.find("o/r", "abc", "m.gguf", TOTAL) == path
    assert headers.find("o/r", "abc", "m.gguf", TOTAL + 1) is None


@pytest.mark.parametrize("file", ["../m", "m.bin", "a/..", "", "m\0.gguf"])
def test_only_names_of_gguf_files_are_written(tmp_path: Path, file: str) -> None:
    with pytest.raises(NotSparse):
        SparseHeaders(tmp_path).path("o/r", "abc", file)


def test_an_incomplete_header_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotSparse, match="not complete"):
        write_sparse(tmp_path / "m.gguf", HEAD[:-10_000], TOTAL)
    assert list(tmp_path.iterdir()) == []


def test_a_size_that_no_disk_has_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"large|argument"):
        write_sparse(tmp_path / "m.gguf", HEAD, 2**62)
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_repositories_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_header, "KEPT_REPOSITORIES", 2)
    headers = SparseHeaders(tmp_path)
    for age, revision in enumerate("dcba"):
        path = headers.write("o/r", revision, "m.gguf", HEAD, TOTAL)
        os.utime(path.parent, (10 - age, 10 - age))
    left = [headers.find("o/r", revision, "m.gguf", TOTAL) is not None for revision in "dcba"]
    assert sum(left) == 2


def test_stand_ins_are_private(tmp_path: Path) -> None:
    path = SparseHeaders(tmp_path / "sparse").write("o/r", "abc", "m.gguf", HEAD, TOTAL)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
