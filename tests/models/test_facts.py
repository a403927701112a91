"""All facts of a model together."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.models.companions import Companions
from framework.models.facts import FactsReader
from framework.models.gguf_header import TEMPLATE_LIMIT_BYTES
from framework.models.header_cache import HeaderCache
from framework.values.reason import Refused
from tests.models.gguf_bytes import Q4_0_TENSOR, STRING, U32, Tensor, gguf, pair

GEMMA = gguf(
    pair("general.architecture", STRING, "gemma3"),
    pair("general.file_type", U32, 2),
    pair("gemma3.block_count", U32, 7),
    pair("gemma3.attention.sliding_window", U32, 512),
    pair("tokenizer.chat_template", STRING, "{% if tools %}{% if enable_thinking %}"),
    tensors=(Tensor("token_embd.weight", (32, 2), Q4_0_TENSOR), Tensor("blk.0.norm", (8,), 0, 64)),
    data=128,
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small model with a window and a template."""
    path = tmp_path / "gemma-3-x.gguf"
    path.write_bytes(GEMMA)
    return path


@pytest.fixture
def reader() -> FactsReader:
    """A reader that keeps nothing on disk."""
    return FactsReader(HeaderCache())


def test_facts_of_a_model(model: Path, reader: FactsReader) -> None:
    facts = reader.read(model)
    assert facts.header.swa_mask == (True, True, True, True, True, False, True)
    assert (facts.template.supports_tools, facts.template.supports_reasoning) == (True, True)
    assert (facts.weights.parameters, facts.weights.tensors, facts.weights.total_bytes) == (72, 2, 68)
    assert dict(facts.weights.bytes_by_type) == {"Q4_0": 36, "F32": 32}
    assert (facts.quantisation, facts.files.total_bytes) == ("Q4_0", len(GEMMA))


def test_a_template_can_be_put_in_its_place(model: Path, reader: FactsReader) -> None:
    assert not reader.read(model, template="{{ x }}").template.supports_tools
    assert reader.read(model).template.supports_tools


def test_the_same_facts_are_given_again_until_the_file_changes(model: Path, reader: FactsReader) -> None:
    first = reader.read(model)
    assert reader.read(model) is first
    model.write_bytes(GEMMA.replace(b"enable_thinking", b"enable_nothing!"))
    assert not reader.read(model).template.supports_reasoning


def test_a_model_without_companions(model: Path, reader: FactsReader) -> None:
    assert reader.companions(reader.read(model)) == Companions()


def test_tensors_of_all_shards_count(tmp_path: Path, reader: FactsReader) -> None:
    for index in (1, 2):
        named = GEMMA.replace(b"blk.0", b"blk.%d" % index).replace(b"token_embd", b"token_emb%d" % index)
        (tmp_path / f"m-0000{index}-of-00002.gguf").write_bytes(named)
    facts = reader.read(tmp_path / "m-00002-of-00002.gguf")
    assert (facts.weights.tensors, len(facts.tensors)) == (4, 4)
    assert facts.files.notes[0].code == "other_shard_named"


def test_a_missing_model_is_refused(tmp_path: Path, reader: FactsReader) -> None:
    with pytest.raises(Refused, match="does not exist"):
        reader.read(tmp_path / "gone.gguf")


def test_a_shard_that_disappears_is_noticed(tmp_path: Path, reader: FactsReader) -> None:
    test_tensors_of_all_shards_count(tmp_path, reader)
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(Refused, match="are missing"):
        reader.read(tmp_path / "m-00001-of-00002.gguf")


def test_a_template_that_is_too_large_is_known_to_be_there_and_not_kept(
    tmp_path: Path, reader: FactsReader
) -> None:
    text = pair("tokenizer.chat_template", STRING, "{% if tools %}" + "a" * TEMPLATE_LIMIT_BYTES)
    (path := tmp_path / "m.gguf").write_bytes(gguf(pair("general.architecture", STRING, "llama"), text))
    facts = reader.read(path)
    assert (facts.header.chat_template, facts.header.template_bytes) == (None, TEMPLATE_LIMIT_BYTES + 14)
    assert not facts.template.supports_tools
    assert [note.code for note in facts.files.notes] == ["template_too_large"]
    assert reader.read(path, template="{% if tools %}").files.notes == ()
