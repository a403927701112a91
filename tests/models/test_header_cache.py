"""Header facts remembered in memory and on disk."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from framework.models import header_cache
from framework.models.gguf_tensors import read_tensors
from framework.models.header_cache import HeaderCache, decode, encode
from framework.values.engine import FileId
from tests.models.gguf_bytes import ARRAY, BOOL, STRING, U32, Array, Tensor, gguf, llama, pair

RICH = gguf(
    pair("general.architecture", STRING, "llama"),
    pair("general.basename", STRING, "Base"),
    pair("llama.block_count", U32, 2),
    pair("llama.attention.head_count_kv", ARRAY, Array(U32, (1, 2))),
    pair("llama.attention.sliding_window_pattern", ARRAY, Array(BOOL, (1, 0))),
    pair("tokenizer.chat_template", STRING, "{{ 'ä' }}"),
    tensors=(Tensor("a", (4, 8)), Tensor("b", (2, 2, 2), 9999, 128)),
    data=256,
)


def put(path: Path, data: bytes = RICH) -> FileId:
    path.write_bytes(data)
    return identity(path)


def identity(path: Path) -> FileId:
    status = path.stat()
    return FileId(path, status.st_size, status.st_mtime_ns)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The directory of the cache; not made yet."""
    return tmp_path / "cache" / "headers"


def overwrite_quietly(file: FileId) -> None:
    """Change what the file holds, but neither size nor time."""
    file.path.write_bytes(bytes(file.size))
    os.utime(file.path, ns=(file.mtime_ns, file.mtime_ns))


def test_facts_come_back_from_disk_as_they_were_read(tmp_path: Path, kept: Path) -> None:
    file = put(tmp_path / "m.gguf")
    read = HeaderCache(kept).read(file)
    overwrite_quietly(file)
    again = HeaderCache(kept).read(file)
    assert read.status == "ok"
    assert again == read
    assert again.header.n_kv_heads_by_layer == (1, 2)


def test_facts_come_back_from_memory_without_a_directory(tmp_path: Path) -> None:
    cache, file = HeaderCache(), put(tmp_path / "m.gguf")
    read = cache.read(file)
    file.path.unlink()
    assert cache.read(file) is read


def test_a_changed_file_is_read_again(tmp_path: Path, kept: Path) -> None:
    cache = HeaderCache(kept)
    assert cache.read(put(tmp_path / "m.gguf")).header.n_layers == 2
    file = put(tmp_path / "m.gguf", llama())
    assert cache.read(file).header.n_layers == 32
    assert HeaderCache(kept).read(file).header.n_layers == 32


def test_a_faulty_file_is_not_remembered(tmp_path: Path, kept: Path) -> None:
    file = put(tmp_path / "m.gguf", RICH[:-200])
    assert HeaderCache(kept).read(file).status == "truncated"
    assert not kept.exists()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[:20], id="cut"),
        pytest.param(lambda data: b"[]", id="list"),
        pytest.param(lambda data: b"\xff" * 40, id="bytes"),
        pytest.param(lambda data: data.replace(b'"n_layers"', b'"other"'), id="unknown field"),
        pytest.param(lambda data: data.replace(b'"format":"1', b'"format":"0'), id="other format"),
        pytest.param(lambda data: orjson.dumps({**orjson.loads(data), "tensors": [[1]]}), id="few columns"),
        pytest.param(lambda data: orjson.dumps({**orjson.loads(data), "header": 3}), id="no header"),
    ],
)
def test_damaged_facts_are_read_again(tmp_path: Path, kept: Path, damage: object) -> None:
    assert callable(damage)
    file = put(tmp_path / "m.gguf")
    read = HeaderCache(kept).read(file)
    (entry,) = kept.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    assert decode(entry.read_bytes(), file) is None
    assert HeaderCache(kept).read(file) == read


def test_facts_of_another_file_are_not_taken(tmp_path: Path) -> None:
    first, second = put(tmp_path / "a.gguf"), put(tmp_path / "b.gguf")
    assert decode(encode(first, read_tensors(first.path)), second) is None


def test_a_directory_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = HeaderCache(tmp_path / "file" / "below")
    assert cache.read(put(tmp_path / "m.gguf")).status == "ok"


def test_memory_is_bounded(tmp_path: Path) -> None:
    cache = HeaderCache(memory_limit_bytes=3 * header_cache.HEADER_COST_BYTES)
    first, *_ = files = [put(tmp_path / f"{number}.gguf", llama()) for number in range(5)]
    for file in files:
        cache.read(file)
    first.path.unlink()
    assert cache.read(first).status == "unreadable"
    files[-1].path.unlink()
    assert cache.read(files[-1]).status == "ok"


def test_the_disk_keeps_the_newest(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header_cache, "DISK_FILES", 2)
    cache = HeaderCache(kept)
    for number in range(4):
        cache.read(put(tmp_path / f"{number}.gguf", llama()))
    assert len(list(kept.iterdir())) == 2


def test_the_directory_is_private(tmp_path: Path, kept: Path) -> None:
    HeaderCache(kept).read(put(tmp_path / "m.gguf"))
    assert kept.stat().st_mode & 0o077 == 0
