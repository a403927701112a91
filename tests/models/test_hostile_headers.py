"""Headers made to take time, memory or the process: one line says what is wrong, soon."""

from __future__ import annotations

import io
import os
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.models import gguf_stream
from framework.models.file_set import check_model_file, read_set
from framework.models.gguf_header import CHANGED, open_gguf
from framework.models.gguf_stream import RUN_LENGTHS, RUN_STRINGS, GgufFault
from framework.models.gguf_tensors import TensorResult, parse_tensors, read_tensors
from framework.values.reason import Refused
from tests.models.gguf_bytes import (
    ARRAY,
    BOOL,
    STRING,
    U8,
    U32,
    U64,
    Array,
    Tensor,
    gguf,
    llama,
    pair,
    parse_counted,
    text,
)

ARCH = pair("general.architecture", STRING, "llama")
MIB = 2**20


def parse(data: bytes) -> TensorResult:
    return parse_tensors(io.BytesIO(data), len(data))


def head(tensors: int, pairs: int) -> bytes:
    return b"GGUF\3\0\0\0" + struct.pack("<QQ", tensors, pairs)


def strings(count: int, body: bytes = b"") -> bytes:
    """A pair whose value is an array of texts, of which only the beginning is there."""
    return text("tokenizer.ggml.tokens") + struct.pack("<IIQ", ARRAY, STRING, count) + body


@pytest.mark.parametrize(
    ("data", "clause"),
    [
        pytest.param(head(2**60, 0), "1152921504606846976 tensors", id="tensors"),
        pytest.param(head(0, 2**60), "1152921504606846976 header entries", id="pairs"),
        pytest.param(head(0, 1) + strings(2**60), "elements in the header", id="texts"),
        pytest.param(gguf(ARCH, tensors=(Tensor("n" * 300),), data=128), "300 bytes", id="long tensor name"),
        pytest.param(head(0, 1) + text("k" * 70_000), "70000 bytes", id="long key"),
    ],
)
def test_absurd_counts_cost_nothing(tmp_path: Path, data: bytes, clause: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    os.truncate(path, 2**40)
    tracemalloc.start()
    found, file = parse_counted(path)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.status, clause in found.detail) == ("corrupt", True), found.detail
    assert file.bytes_read < MIB
    assert peak_bytes < 8 * MIB


def test_texts_together_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_stream, "KEEP_BUDGET_BYTES", 10_000)
    names = ("general.name", "general.basename", "tokenizer.chat_template")
    assert parse(gguf(*(pair(name, STRING, "x" * 3000) for name in names))).status == "ok"
    assert parse(gguf(*(pair(name, STRING, "x" * 4000) for name in names))).status == "corrupt"


def test_lists_under_any_name_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_stream, "KEEP_BUDGET_BYTES", 10_000)
    lists = [pair(f"a{n}.attention.head_count", ARRAY, Array(U8, (1,) * 100)) for n in range(5)]
    assert parse(gguf(*lists)).status == "corrupt"


def test_a_header_of_hundreds_of_megabytes_is_given_up_soon(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(head(0, 2) + strings(7 * MIB) + bytes(8 * 7 * MIB) + strings(7 * MIB))
    os.truncate(path, 400 * MIB)
    tracemalloc.start()
    found, file = parse_counted(path)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.status, "elements in the header" in found.detail) == ("corrupt", True)
    assert file.bytes_read < 60 * MIB
    assert peak_bytes < 8 * MIB


def test_long_jumps_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_stream, "READ_BUDGET_BYTES", 2**18)
    path = tmp_path / "m.gguf"
    start = head(0, 1) + strings(1000)
    with path.open("wb") as file:
        file.write(start)
        for number in range(1000):
            file.seek(len(start) + number * 16_392)
            file.write(struct.pack("<Q", 16_384))
        file.truncate(len(start) + 1000 * 16_392)
    found = read_tensors(path)
    assert (found.status, "bytes of header" in found.detail) == ("corrupt", True)


def test_small_jumps_do_not_read_more_than_is_there(tmp_path: Path) -> None:
    texts = tuple("x" * length for length in (5000, 3, 70_000, 1, 0, 2**20, 9))
    data = gguf(ARCH, pair("x", ARRAY, Array(STRING, texts)), tensors=(Tensor(),), data=128)
    assert parse(data).status == "ok"


@pytest.mark.parametrize("length", [0, 1, 63, 64, 255, 256, 65_536], ids=lambda length: f"length {length}")
def test_texts_of_every_length_are_walked_through_alike(length: int) -> None:
    texts = ("ab",) * RUN_STRINGS + ("x" * length,) * 3 + ("",) * (2 * RUN_STRINGS + 1)
    data = gguf(
        pair("tokenizer.ggml.tokens", ARRAY, Array(STRING, texts)), ARCH, tensors=(Tensor(),), data=128
    )
    found = parse(data)
    assert (found.status, found.header.vocab_size, found.header.architecture) == ("ok", len(texts), "llama")


def test_a_length_that_only_begins_like_a_short_one_is_not_taken_for_it() -> None:
    body = struct.pack("<Q", 5 + 2**56) + b"abcde"
    assert len(RUN_LENGTHS) == len(set(RUN_LENGTHS))
    assert parse(head(0, 1) + strings(RUN_STRINGS, body * RUN_STRINGS)).status == "truncated"


@given(st.lists(st.integers(0, 70), max_size=600))
def test_runs_of_short_texts_end_where_they_end(lengths: list[int]) -> None:
    texts = Array(STRING, tuple("x" * length for length in lengths))
    data = gguf(pair("tokenizer.ggml.merges", ARRAY, texts), ARCH, tensors=(Tensor(),), data=128)
    assert (parse(data).status, parse(data).header.architecture) == ("ok", "llama")


def test_a_file_that_grows_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(llama())
    with pytest.raises(GgufFault, match="written to"), open_gguf(path):
        path.write_bytes(llama() + b"more")


def test_a_file_that_shrinks_while_it_is_read() -> None:
    whole = llama()
    found = parse_tensors(io.BytesIO(whole[:200]), len(whole))
    assert (found.status, found.detail) == ("truncated", "the file became shorter while it was read")


def test_a_file_that_is_being_written_says_to_wait(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(llama())
    with pytest.raises(Refused, match="is being written to") as refused:
        read_set(path, lambda file: TensorResult("unreadable", CHANGED))
    assert "Wait" in refused.value.failure.reason.remedy


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").symlink_to(tmp_path / "b.gguf")
    (tmp_path / "b.gguf").symlink_to(tmp_path / "a.gguf")
    with pytest.raises(Refused, match="too many levels"):
        check_model_file(tmp_path / "a.gguf")


WHOLE = gguf(
    ARCH,
    pair("llama.block_count", U32, 4),
    pair("llama.attention.sliding_window_pattern", ARRAY, Array(BOOL, (1, 0, 1, 0))),
    pair("llama.attention.head_count_kv", ARRAY, Array(U32, (8, 8, 0, 8))),
    pair("general.name", STRING, "näme"),
    pair("tokenizer.ggml.tokens", ARRAY, Array(STRING, ("a", "bc", "def") * 60)),
    pair("nested", ARRAY, Array(ARRAY, (Array(STRING, ("x",)), Array(U64, (1, 2))))),
    tensors=(Tensor("a", (4, 8)), Tensor("b", (32,), 2, 128)),
    data=146,
)
NUMBERS = st.one_of(st.integers(0, 300), st.sampled_from([2**31, 2**32 - 1, 2**60, 2**63, 2**64 - 1]))


def test_cut_anywhere_a_file_is_never_whole() -> None:
    for length in range(len(WHOLE)):
        found = parse(WHOLE[:length])
        assert found.status in ("truncated", "corrupt", "not_gguf"), length
        assert found.detail


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(8, len(WHOLE) - 8), NUMBERS), min_size=1, max_size=4))
def test_absurd_numbers_anywhere_are_read_without_a_fault(changes: list[tuple[int, int]]) -> None:
    data = bytearray(WHOLE)
    for place, number in changes:
        data[place : place + 8] = struct.pack("<Q", number)
    parse(bytes(data))


@given(st.integers(0, 2**20), st.integers(0, 40), st.binary(max_size=400))
def test_any_bytes_behind_a_good_start_are_read_without_a_fault(
    tensors: int, pairs: int, data: bytes
) -> None:
    parse(head(tensors, pairs) + data)
