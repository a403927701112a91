"""The tensor directory, and data that is missing (02 §2.14)."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.models.gguf_tensors import TensorResult, parse_tensors, read_tensors
from tests.models.gguf_bytes import Q4_0_TENSOR, STRING, U32, Tensor, gguf, llama, pair

ARCH = pair("general.architecture", STRING, "llama")


def parse(data: bytes) -> TensorResult:
    return parse_tensors(io.BytesIO(data), len(data))


def test_a_whole_file() -> None:
    found = parse(llama())
    assert (found.status, found.missing_bytes) == ("ok", 0)
    (tensor,) = found.tensors
    assert (tensor.name, tensor.dims, tensor.bytes) == ("w", (4, 8), 128)


def test_quantised_bytes_are_those_of_whole_blocks() -> None:
    found = parse(gguf(ARCH, tensors=(Tensor(dims=(64, 2), type=Q4_0_TENSOR),), data=72))
    assert (found.status, found.tensors[0].bytes) == ("ok", 72)


def test_missing_data_is_counted() -> None:
    tensors = (Tensor("a"), Tensor("b", offset=128))
    found = parse(gguf(ARCH, tensors=tensors, data=200))
    assert (found.status, found.missing_bytes) == ("truncated", 56)
    assert "tensor 'b' is the first cut one" in found.detail


def test_data_starts_at_the_alignment_of_the_file() -> None:
    alignment = pair("general.alignment", U32, 512)
    whole = gguf(ARCH, alignment, tensors=(Tensor(),), data=128, alignment=512)
    assert parse(whole).status == "ok"
    assert parse(whole[:-1]).missing_bytes == 1


@pytest.mark.parametrize("value", [0], ids=["zero"])
def test_an_impossible_alignment_is_corrupt(value: int) -> None:
    assert (
        parse(gguf(ARCH, pair("general.alignment", U32, value), tensors=(Tensor(),), data=128)).status
        == "corrupt"
    )


def test_a_tensor_of_an_unknown_type_has_no_known_size() -> None:
    found = parse(gguf(ARCH, tensors=(Tensor(type=9999),)))
    assert (found.status, found.tensors[0].bytes) == ("ok", None)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"GGUF\3\0\0\0" + struct.pack("<QQ", 2**40, 0), "corrupt", id="more tensors than bytes"),
        pytest.param(gguf(ARCH, tensors=(Tensor(dims=(1,) * 5),), data=64), "corrupt", id="five dimensions"),
        pytest.param(b"hello", "not_gguf", id="another file"),
        pytest.param(gguf(ARCH, tensors=(Tensor(dims=(2**63,) * 4),)), "corrupt", id="absurd size"),
        pytest.param(gguf(ARCH, tensors=(Tensor(dims=(2**44,)),)), "truncated", id="large size"),
        pytest.param(gguf(ARCH, tensors=(Tensor(dims=(2**46,), type=9999),)), "corrupt", id="absurd count"),
    ],
)
def test_status(data: bytes, status: str) -> None:
    assert parse(data).status == status


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    assert read_tensors(tmp_path / "gone").status == "unreadable"


def test_holes_count_as_data(tmp_path: Path) -> None:
    path = tmp_path / "sparse.gguf"
    path.write_bytes(gguf(ARCH, tensors=(Tensor(dims=(2**30,)),)))
    start_of_data = path.stat().st_size
    os.truncate(path, start_of_data + 4 * 2**30)
    assert read_tensors(path).status == "ok"


@given(st.integers(0, len(llama()) - 1))
def test_a_file_cut_anywhere_is_never_whole(length: int) -> None:
    assert parse(llama()[:length]).status != "ok"


@given(st.lists(st.tuples(st.integers(0, len(llama()) - 1), st.integers(0, 255)), max_size=8))
def test_a_file_with_changed_bytes_is_read_without_a_fault(changes: list[tuple[int, int]]) -> None:
    data = bytearray(llama())
    for place, byte in changes:
        data[place] = byte
    parse(bytes(data))


@pytest.mark.engine
def test_the_real_model_is_whole(smollm2: Path) -> None:
    found = read_tensors(smollm2)
    assert (found.status, found.missing_bytes) == ("ok", 0)
    assert {"token_embd.weight", "blk.0.attn_q.weight"} <= {tensor.name for tensor in found.tensors}
