"""One bound in bytes for all that is remembered of headers."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from framework.models.facts import FactsReader
from framework.models.header_cache import HeaderCache
from framework.models.recent import LIMIT_BYTES, Recent, cost_bytes
from framework.values.engine import FileId
from tests.models.gguf_bytes import STRING, U32, Tensor, gguf, pair

LLAMA = (pair("general.architecture", STRING, "llama"), pair("llama.block_count", U32, 2))
MANY = gguf(*LLAMA, tensors=tuple(Tensor(f"blk.{n}.some_weight", (1,), 0, 0) for n in range(5000)), data=64)
WIDE = gguf(*LLAMA, pair("tokenizer.chat_template", STRING, "\U0001f600" + "a" * 900_000))


def test_the_least_used_goes_first_and_the_bound_holds() -> None:
    recent = Recent(100)
    for name in "abc":
        recent.put(name, name.upper(), 40)
        recent.get("a")
    assert [recent.get(name) for name in "abc"] == ["A", None, "C"]
    assert recent.used_bytes == 80


def test_what_is_larger_than_the_bound_pushes_nothing_out() -> None:
    recent = Recent(100)
    recent.put("a", 1, 90)
    recent.put("b", 2, 101)
    assert (recent.get("a"), recent.get("b")) == (1, None)


def test_a_key_that_is_put_twice_counts_once() -> None:
    recent = Recent(100)
    recent.put("a", 1, 60)
    recent.put("a", 2, 60)
    assert (recent.get("a"), recent.used_bytes) == (2, 60)


@pytest.mark.parametrize("data", [MANY, WIDE], ids=["tensors", "wide characters"])
def test_the_cost_is_what_it_takes(tmp_path: Path, data: bytes) -> None:
    (path := tmp_path / "m.gguf").write_bytes(data)
    file = FileId(path, len(data), path.stat().st_mtime_ns)
    HeaderCache().read(file)
    tracemalloc.start()
    try:
        found = HeaderCache().read(file)
        taken_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken_bytes <= cost_bytes(found.header, found.tensors) <= 2 * taken_bytes


def test_headers_and_facts_share_one_bound(tmp_path: Path) -> None:
    (path := tmp_path / "m.gguf").write_bytes(MANY)
    headers = HeaderCache()
    facts = FactsReader(headers).read(path)
    assert headers.recent.used_bytes >= 2 * cost_bytes(facts.header, facts.tensors)
    assert headers.recent.limit_bytes == LIMIT_BYTES <= 128 * 2**20


def test_a_glance_keeps_nothing(tmp_path: Path) -> None:
    (path := tmp_path / "m.gguf").write_bytes(MANY)
    headers = HeaderCache()
    assert FactsReader(headers).glance(path).weights.tensors == 5000
    assert headers.recent.used_bytes == 0
