"""GGUF headers: right, odd, cut and damaged ones (02 §2)."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.models.gguf_fields import (
    FLAG_FIELDS,
    LAYER_LISTS,
    NUMBER_FIELDS,
    SCALAR_FIELDS,
    TEXT_FIELDS,
    GgufHeader,
)
from framework.models.gguf_header import HeaderResult, parse_header, read_header
from tests.models.gguf_bytes import (
    ARRAY,
    BOOL,
    F32,
    F64,
    I8,
    I32,
    I64,
    STRING,
    U8,
    U16,
    U32,
    U64,
    Array,
    gguf,
    llama,
    pair,
    parse_counted,
    text,
)

ARCH = pair("general.architecture", STRING, "llama")


def parse(data: bytes) -> HeaderResult:
    return parse_header(io.BytesIO(data), len(data))


def header(*pairs: bytes) -> GgufHeader:
    """Facts of a llama header with these pairs, which must be readable to the end."""
    result = parse(gguf(ARCH, *pairs))
    assert (result.status, result.detail) == ("ok", "")
    return result.header


def key(suffix: str, type_id: int, value: object) -> bytes:
    return pair(f"llama.{suffix}", type_id, value)


def test_a_plain_header() -> None:
    found = parse(llama())
    assert found.status == "ok"
    facts = found.header
    assert (facts.architecture, facts.n_layers, facts.context_length) == ("llama", 32, 8192)
    assert (facts.n_heads, facts.vocab_size, facts.is_diffusion) == (32, 3, False)


def test_keys_may_stand_before_the_architecture() -> None:
    assert parse(gguf(key("block_count", U32, 7), ARCH)).header.n_layers == 7


def test_keys_of_another_architecture_do_not_count() -> None:
    assert header(pair("clip.block_count", U32, 7)).n_layers is None


@pytest.mark.parametrize("type_id", [U8, I8, U16, U32, I32, U64, I64])
def test_every_integer_type_is_accepted(type_id: int) -> None:
    assert header(key("block_count", type_id, 12)).n_layers == 12


@pytest.mark.parametrize(
    ("type_id", "value"),
    [(I32, -1), (F32, 3.0), (F64, 3.0), (BOOL, 1), (STRING, "3"), (ARRAY, Array(U32, (3,)))],
)
def test_other_values_leave_a_number_unset(type_id: int, value: object) -> None:
    assert header(key("embedding_length", type_id, value)).embedding_length is None


@pytest.mark.parametrize(
    ("type_id", "value"), [(U32, 1), (BOOL, 1), (ARRAY, Array(STRING, ("x",)))], ids=["u32", "bool", "array"]
)
def test_other_values_leave_a_text_unset(type_id: int, value: object) -> None:
    assert header(pair("tokenizer.chat_template", type_id, value)).chat_template is None


def test_texts_may_hold_bytes_that_are_no_text() -> None:
    assert header(pair("tokenizer.chat_template", STRING, b"a\xffb")).chat_template == "a\ufffdb"


def test_kv_heads_by_layer() -> None:
    facts = header(key("attention.head_count_kv", ARRAY, Array(I32, (8, 0, 4, 8))))
    assert (facts.n_kv_heads, facts.n_kv_heads_by_layer) == (8, (8, 0, 4, 8))


def test_a_scalar_beside_the_list_stays() -> None:
    name = "attention.head_count_kv"
    facts = header(key(name, U32, 5), key(name, ARRAY, Array(U8, (1, 2))))
    assert (facts.n_kv_heads, facts.n_kv_heads_by_layer) == (5, (1, 2))


@pytest.mark.parametrize(
    ("suffix", "field"), [("attention.head_count", "n_heads"), ("feed_forward_length", "feed_forward_length")]
)
def test_of_a_list_the_largest_counts(suffix: str, field: str) -> None:
    assert getattr(header(key(suffix, ARRAY, Array(I32, (3, 9, 4)))), field) == 9


@pytest.mark.parametrize("items", [(), (1, -1)], ids=["empty", "negative"])
def test_lists_that_say_nothing(items: tuple[int, ...]) -> None:
    facts = header(key("attention.head_count_kv", ARRAY, Array(I32, items)))
    assert (facts.n_kv_heads, facts.n_kv_heads_by_layer) == (None, None)


@pytest.mark.parametrize(
    ("pairs", "arch", "diffusion"),
    [
        pytest.param([pair("diffusion.canvas_length", U32, 0)], "llama", True, id="canvas 0"),
        pytest.param([pair("diffusion.canvas_length", I32, 256)], "llama", True, id="canvas"),
        pytest.param([pair("diffusion.canvas_length", STRING, "x")], "llama", False, id="canvas as text"),
        pytest.param([], "Diffusion-gemma", True, id="architecture"),
        pytest.param([], "stable-diffusion", False, id="another architecture"),
    ],
)
def test_diffusion(pairs: list[bytes], arch: str, diffusion: bool) -> None:
    found = parse(gguf(pair("general.architecture", STRING, arch), *pairs))
    assert found.header.is_diffusion is diffusion


@pytest.mark.parametrize(
    ("period", "layers", "full"),
    [
        pytest.param(6, 12, [5, 11], id="6"),
        pytest.param(3, 6, [2, 5], id="3"),
        pytest.param(1, 3, [0, 1, 2], id="1"),
    ],
)
def test_a_window_period_becomes_a_mask(period: int, layers: int, full: list[int]) -> None:
    facts = header(key("block_count", U32, layers), key("attention.sliding_window_pattern", U32, period))
    assert facts.swa_mask is not None
    assert [layer for layer, windowed in enumerate(facts.swa_mask) if not windowed] == full
    assert (facts.swa_period, len(facts.swa_mask)) == (period, layers)


def test_a_window_list_cancels_a_period() -> None:
    name = "attention.sliding_window_pattern"
    facts = header(key("block_count", U32, 2), key(name, ARRAY, Array(BOOL, (1, 0))), key(name, U32, 6))
    assert (facts.swa_period, facts.swa_mask) == (None, (True, False))


@pytest.mark.parametrize("layers", [0, 2**40])
def test_a_mask_is_made_for_a_sane_number_of_layers_only(layers: int) -> None:
    facts = header(key("block_count", U64, layers), key("attention.sliding_window_pattern", U32, 6))
    assert facts.swa_mask in ((), None)


@pytest.mark.parametrize(
    ("type_id", "value", "mask"),
    [
        pytest.param(ARRAY, Array(BOOL, (1, 0, 1)), (True, False, True), id="list"),
        pytest.param(BOOL, 1, (True, True), id="one for all"),
        pytest.param(U32, 0, (False, False), id="as a number"),
    ],
)
def test_recurrent_layers(type_id: int, value: object, mask: tuple[bool, ...]) -> None:
    facts = header(key("block_count", U32, 2), key("attention.recurrent_layers", type_id, value))
    assert facts.recurrent_mask == mask


def test_the_vocabulary_size_is_the_token_list_first() -> None:
    tokens = pair("tokenizer.ggml.tokens", ARRAY, Array(STRING, ("a", "b")))
    assert header(key("vocab_size", U32, 9)).vocab_size == 9
    assert header(key("vocab_size", U32, 9), tokens).vocab_size == 2


def test_origin_size_and_audio() -> None:
    facts = header(
        pair("general.source.url", STRING, "https://example.org"),
        pair("general.size_label", STRING, "135M"),
        pair("clip.has_audio_encoder", BOOL, 1),
    )
    assert (facts.origin.source_url, facts.origin.basename) == ("https://example.org", None)
    assert (facts.size_label, facts.has_audio_encoder) == ("135M", True)


def test_unwanted_values_of_every_kind_are_skipped() -> None:
    nested = Array(ARRAY, (Array(STRING, ("x", "yy")), Array(F64, (1.0,))))
    facts = header(
        pair("a", STRING, "x" * 100),
        pair("b", ARRAY, nested),
        pair("c", F64, 1.0),
        key("block_count", U32, 4),
    )
    assert facts.n_layers == 4


def test_every_read_starts_from_nothing() -> None:
    assert parse(llama()).header.n_layers == 32
    assert parse(gguf(pair("general.architecture", STRING, "llama"))).header == GgufHeader(
        architecture="llama"
    )


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"hello, world", "not_gguf", id="another file"),
        pytest.param(b"GG", "not_gguf", id="two bytes"),
        pytest.param(gguf(ARCH, version=b"\0\0\0\3"), "big_endian", id="big-endian"),
        pytest.param(gguf(ARCH, version=b"\0\0\0\0"), "unsupported_version", id="version 0"),
        pytest.param(gguf(ARCH, version=b"\1\0\0\0"), "unsupported_version", id="version 1"),
        pytest.param(gguf(ARCH, version=b"\2\0\0\0"), "ok", id="version 2"),
        pytest.param(b"GGUF\3\0", "truncated", id="cut version"),
        pytest.param(gguf(ARCH, pair(b"\xff\xfe", U8, 1)), "corrupt", id="key is no text"),
        pytest.param(gguf(ARCH, text(b"k" * 65_536) + struct.pack("<IB", U8, 1)), "corrupt", id="long key"),
        pytest.param(b"GGUF\3\0\0\0" + struct.pack("<QQ", 0, 2**40), "corrupt", id="more pairs than bytes"),
    ],
)
def test_status(data: bytes, status: str) -> None:
    assert parse(data).status == status


def test_an_unknown_type_is_corrupt_and_the_pairs_before_it_stand() -> None:
    found = parse(gguf(ARCH, text("x") + struct.pack("<I", 13), pair("y", U64, 1)))
    assert (found.status, found.header.architecture) == ("corrupt", "llama")
    assert "unknown type 13" in found.detail


def test_an_unknown_element_type_is_corrupt() -> None:
    assert parse(gguf(ARCH, text("x") + struct.pack("<IIQ", ARRAY, 77, 1) + bytes(8))).status == "corrupt"


@pytest.mark.parametrize(("depth", "status"), [(4, "ok"), (5, "corrupt")])
def test_arrays_nest_up_to_four_deep(depth: int, status: str) -> None:
    value = Array(U8, (1,))
    for _ in range(depth - 1):
        value = Array(ARRAY, (value,))
    assert parse(gguf(ARCH, pair("x", ARRAY, value))).status == status


def test_a_file_cut_in_its_sixth_value_keeps_the_first_five() -> None:
    suffixes = ("block_count", "context_length", "embedding_length", "expert_count", "vocab_size")
    pairs = [ARCH, *(key(suffix, U64, 3) for suffix in suffixes)]
    whole = gguf(*pairs, alignment=1)
    found = parse(whole[:-3])
    assert (found.status, found.header.n_experts, found.header.vocab_size) == ("truncated", 3, None)


def test_a_wanted_text_over_the_limit_is_corrupt_without_being_read() -> None:
    huge = text("tokenizer.chat_template") + struct.pack("<IQ", STRING, 2**50)
    assert parse(gguf(ARCH, huge, pair("x", U64, 1))).status == "corrupt"


def test_texts_together_are_limited_by_the_file() -> None:
    cut = text("tokenizer.chat_template") + struct.pack("<IQ", STRING, 2**20)
    assert parse(gguf(ARCH, cut, pair("x", U64, 1))).status == "truncated"


@pytest.mark.parametrize(
    ("prepare", "clause"),
    [
        pytest.param(lambda path: None, "no such file", id="absent"),
        pytest.param(lambda path: path.touch(), "is empty", id="empty"),
        pytest.param(lambda path: path.mkdir(), "is a directory", id="directory"),
        pytest.param(os.mkfifo, "is not a regular file", id="pipe"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, prepare: object, clause: str) -> None:
    assert callable(prepare)
    prepare(tmp_path / "x.gguf")
    found = read_header(tmp_path / "x.gguf")
    assert found.status == "unreadable"
    assert clause in found.detail


def test_a_large_vocabulary_is_walked_through_in_few_reads(tmp_path: Path) -> None:
    tokens = struct.pack("<IQ", STRING, 262_144) + text("token") * 262_144
    path = tmp_path / "large.gguf"
    path.write_bytes(gguf(ARCH, text("tokenizer.ggml.tokens") + struct.pack("<I", ARRAY) + tokens))
    found, file = parse_counted(path)
    assert found.header.vocab_size == 262_144
    assert file.calls < 30


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(struct.pack("<IIQ", ARRAY, STRING, 2**62), id="texts"),
        pytest.param(struct.pack("<IIQ", ARRAY, ARRAY, 2**62), id="arrays"),
        pytest.param(struct.pack("<IIQ", ARRAY, U8, 2**62), id="bytes"),
    ],
)
def test_a_hole_of_a_hundred_gigabytes_costs_little(tmp_path: Path, value: bytes) -> None:
    path = tmp_path / "hole.gguf"
    path.write_bytes(gguf(ARCH, text("x") + value, pair("y", U64, 1)))
    os.truncate(path, 100 * 2**30)
    found, file = parse_counted(path)
    assert found.status in ("corrupt", "truncated")
    assert file.bytes_read < 2**20


WHOLE = llama(pair("nested", ARRAY, Array(ARRAY, (Array(STRING, ("x",)),))))


@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_anywhere_is_read_without_a_fault(length: int) -> None:
    assert parse(WHOLE[:length]).status in ("ok", "truncated", "corrupt", "not_gguf")


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_a_file_with_changed_bytes_is_read_without_a_fault(changes: list[tuple[int, int]]) -> None:
    data = bytearray(WHOLE)
    for place, byte in changes:
        data[place] = byte
    parse(bytes(data))


@given(st.binary(max_size=300))
def test_any_bytes_behind_the_magic_are_read_without_a_fault(data: bytes) -> None:
    parse(b"GGUF\3\0\0\0" + data)


@pytest.mark.engine
def test_the_real_model(smollm2: Path) -> None:
    facts = read_header(smollm2).header
    assert (facts.architecture, facts.n_layers, facts.vocab_size) == ("llama", 30, 49152)
    assert (facts.context_length, facts.n_heads, facts.n_kv_heads) == (8192, 9, 3)
    assert facts.chat_template is not None


@pytest.mark.parametrize(("name", "suffix"), SCALAR_FIELDS.items())
def test_every_number_of_an_architecture_is_read(name: str, suffix: str) -> None:
    assert getattr(header(key(suffix, U32, 7)), name) == 7


@pytest.mark.parametrize(("name", "full_key"), {**NUMBER_FIELDS, **TEXT_FIELDS}.items())
def test_every_global_number_and_text_is_read(name: str, full_key: str) -> None:
    is_text = name in TEXT_FIELDS
    found = header(pair(full_key, STRING, "x") if is_text else pair(full_key, U32, 7))
    assert getattr(found, name) == ("x" if is_text else 7)


@pytest.mark.parametrize(("name", "full_key"), FLAG_FIELDS.items())
def test_every_flag_is_read(name: str, full_key: str) -> None:
    assert getattr(header(pair(full_key, BOOL, 1)), name) is True


@pytest.mark.parametrize(("name", "suffix"), LAYER_LISTS.items())
def test_lists_by_layer_are_kept_whole(name: str, suffix: str) -> None:
    assert getattr(header(key(suffix, ARRAY, Array(I32, (4, 0, 8)))), name) == (4, 0, 8)


def test_an_encoder_says_that_it_is_not_causal() -> None:
    assert header(key("attention.causal", BOOL, 0)).is_causal is False
