"""A complete model in the cache, without asking anybody (02 §7)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from framework.models.hub.cached import find_cached
from framework.models.hub.pins import write_pin
from framework.values.request import ModelSource
from tests.models.hub.conftest import gguf_bytes

SHARDS = ("m-Q4_K_M-00001-of-00002.gguf", "m-Q4_K_M-00002-of-00002.gguf")
NEW, OLD = "new", "old"


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    return gguf_bytes(tmp_path)


def put(cache: Path, revision: str, files: dict[str, bytes]) -> None:
    snapshot = cache / "models--o--r" / "snapshots" / revision
    for name, content in files.items():
        path = snapshot / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    at = 2_000_000 if revision == NEW else 1_000_000
    os.utime(snapshot, (at, at))


def source(variant: str | None = None, file: str | None = None) -> ModelSource:
    return ModelSource(repo="O/R", variant=variant, file=file)


def test_the_newest_snapshot_wins(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, OLD, {"m-Q8_0.gguf": data})
    put(tmp_path, NEW, {"m-Q8_0.gguf": data})
    found = find_cached(tmp_path, source("q8_0"))
    assert found is not None
    assert (found.revision, found.label, found.from_cache) == (NEW, "Q8_0", True)


def test_a_snapshot_with_only_the_first_shard_is_passed_over(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, OLD, dict.fromkeys(SHARDS, data))
    put(tmp_path, NEW, {SHARDS[0]: data})
    found = find_cached(tmp_path, source("Q4_K_M"))
    assert found is not None
    assert found.revision == OLD
    assert [path.name for path in found.files] == list(SHARDS)


def test_a_cut_off_file_is_passed_over(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, OLD, {"m-Q8_0.gguf": data})
    put(tmp_path, NEW, {"m-Q8_0.gguf": data[:-100]})
    found = find_cached(tmp_path, source("Q8_0"))
    assert found is not None
    assert found.revision == OLD


def test_an_exact_file_in_a_folder(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, NEW, {"BF16/m.gguf": data, "m.gguf": data})
    found = find_cached(tmp_path, source(file="BF16/m.gguf"))
    assert found is not None
    assert found.main.parent.name == "BF16"


def test_a_part_of_a_name_is_only_found_when_it_was_decided_before(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, NEW, {"M-I-Compact.gguf": data})
    assert find_cached(tmp_path, source("Compact")) is None
    write_pin(tmp_path, "o/r", "Compact", "M-I-Compact.gguf")
    found = find_cached(tmp_path, source("compact"))
    assert found is not None
    assert (found.main.name, found.source) == ("M-I-Compact.gguf", source("compact"))


def test_no_variant_is_found_when_it_was_decided_before(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, NEW, {"m-Q8_0.gguf": data, "m-Q4_K_M.gguf": data})
    write_pin(tmp_path, "o/r", None, "m-Q8_0.gguf")
    found = find_cached(tmp_path, source())
    assert found is not None
    assert found.label == "Q8_0"


def test_a_label_in_full_needs_no_record(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, NEW, {"m-Q8_0.gguf": data})
    write_pin(tmp_path, "o/r", "q8_0", "m-Q8_0.gguf")
    assert list(tmp_path.rglob(".paddock")) == []


@pytest.mark.parametrize("content", [b"../../../etc/x.gguf", b"\xff", b"", b"gone.gguf"])
def test_a_record_that_leads_nowhere_finds_nothing(tmp_path: Path, data: bytes, content: bytes) -> None:
    put(tmp_path, NEW, {"m-Q8_0.gguf": data})
    write_pin(tmp_path, "o/r", None, "m-Q8_0.gguf")
    next(path for path in tmp_path.rglob("*") if path.parent.name == ".paddock").write_bytes(content)
    assert find_cached(tmp_path, source()) is None


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(source(), id="no variant named"),
        pytest.param(source("Q2_K"), id="another variant"),
        pytest.param(source(file="../../../x.gguf"), id="a name that leads out"),
        pytest.param(ModelSource(repo="other/r", variant="Q8_0"), id="another repository"),
        pytest.param(ModelSource(path=Path("x.gguf")), id="no hub source"),
    ],
)
def test_what_is_not_there(tmp_path: Path, data: bytes, wanted: ModelSource) -> None:
    put(tmp_path, NEW, {"m-Q8_0.gguf": data})
    assert find_cached(tmp_path, wanted) is None
