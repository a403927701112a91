"""Header facts remembered in memory and on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from framework.models import header_cache
from framework.models.gguf_tensors import read_tensors
from framework.models.header_cache import HeaderCache, decode, encode
from framework.models.recent import Recent, cost_bytes
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


def other(*keys: str, **values: object) -> Callable[[bytes], bytes]:
    """Facts with other values at a place in the document."""

    def change(data: bytes) -> bytes:
        place = document = orjson.loads(data)
        for key in keys:
            place = place[key]
        place.update(values)
        return orjson.dumps(document) if (2**63) not in values.values() else json.dumps(document).encode()

    return change


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
        pytest.param(lambda data: data.replace(b'"format":"', b'"format":"0'), id="other format"),
        pytest.param(lambda data: orjson.dumps({**orjson.loads(data), "tensors": [[1]]}), id="few columns"),
        pytest.param(lambda data: orjson.dumps({**orjson.loads(data), "header": 3}), id="no header"),
        pytest.param(other("header", n_layers="x"), id="number as text"),
        pytest.param(other("header", n_layers=True), id="number as flag"),
        pytest.param(other("header", n_layers=-5), id="negative"),
        pytest.param(other("header", n_layers=1e300), id="fraction"),
        pytest.param(other("header", n_layers=2**63), id="huge"),
        pytest.param(other("header", n_kv_heads_by_layer=["a"]), id="list of texts"),
        pytest.param(other("header", swa_mask=[0, 1]), id="mask of numbers"),
        pytest.param(other("header", chat_template=5), id="template as number"),
        pytest.param(other("header", architecture={"a": 1}), id="architecture as table"),
        pytest.param(other("header", is_diffusion=None), id="no flag"),
        pytest.param(other("header", origin={}), id="origin twice"),
        pytest.param(other("origin", basename=5), id="origin as number"),
        pytest.param(other(data_start="z"), id="start as text"),
        pytest.param(other(tensors={"a": 1}), id="tensors as table"),
        pytest.param(other(tensors=[[5], [[1]], [1], [1], [1]]), id="tensor without name"),
        pytest.param(other(tensors=[["a"], [5], [1], [1], [1]]), id="tensor without dimensions"),
        pytest.param(other(tensors=[["a"], [["x"]], [1], [1], [1]]), id="dimension as text"),
        pytest.param(other(tensors=[["a"], [[1]], [[1]], [1], [1]]), id="type as list"),
        pytest.param(other(tensors=[["a"], [[1]], [1], [None], [1]]), id="no offset"),
        pytest.param(other(tensors=[["a", "b"], [[1]], [1], [1], [1]]), id="columns of two lengths"),
        pytest.param(lambda data: b"[" * 100_000, id="deep"),
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
    first, *_ = files = [put(tmp_path / f"{number}.gguf", llama()) for number in range(5)]
    read = read_tensors(first.path)
    cache = HeaderCache(recent=Recent(3 * cost_bytes(read.header, read.tensors)))
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


@pytest.mark.parametrize(
    "replace",
    [
        pytest.param(lambda place, _: os.mkfifo(place, 0o600), id="pipe"),
        pytest.param(lambda place, _: place.symlink_to("/dev/zero"), id="endless device"),
        pytest.param(lambda place, _: place.symlink_to(place), id="circle"),
        pytest.param(
            lambda place, kept: (kept / "x").write_bytes(b"") or place.symlink_to(kept / "x"), id="link"
        ),
        pytest.param(lambda place, _: place.mkdir(), id="folder"),
    ],
)
def test_what_is_no_file_of_ours_is_not_opened(
    tmp_path: Path, kept: Path, replace: Callable[[Path, Path], object]
) -> None:
    file = put(tmp_path / "m.gguf")
    read = HeaderCache(kept).read(file)
    (place,) = kept.iterdir()
    place.unlink()
    replace(place, kept)
    assert HeaderCache(kept).read(file) == read


@pytest.mark.parametrize("mode", [0o644, 0o660], ids=["readable", "writable"])
def test_facts_that_others_could_have_written_are_not_believed(tmp_path: Path, kept: Path, mode: int) -> None:
    file = put(tmp_path / "m.gguf")
    HeaderCache(kept).read(file)
    (place,) = kept.iterdir()
    place.chmod(mode)
    overwrite_quietly(file)
    assert HeaderCache(kept).read(file).status == "not_gguf"


def test_a_folder_that_others_may_enter_is_not_used(tmp_path: Path, kept: Path) -> None:
    kept.mkdir(parents=True)
    kept.chmod(0o777)
    assert HeaderCache(kept).read(put(tmp_path / "m.gguf")).status == "ok"
    assert not list(kept.iterdir())


def test_what_would_not_be_read_back_is_not_written(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(header_cache, "DISK_FILE_LIMIT_BYTES", 100)
    assert HeaderCache(kept).read(put(tmp_path / "m.gguf")).status == "ok"
    assert not list(kept.iterdir())


def test_the_disk_is_bounded_in_bytes_too(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    HeaderCache(kept).read(put(tmp_path / "first.gguf"))
    (first,) = kept.iterdir()
    monkeypatch.setattr(header_cache, "DISK_LIMIT_BYTES", 2 * first.stat().st_size + 10)
    for number in range(4):
        HeaderCache(kept).read(put(tmp_path / f"{number}.gguf"))
    assert len(list(kept.iterdir())) == 2
    assert not first.exists()


def test_a_file_of_any_name_is_remembered(tmp_path: Path, kept: Path) -> None:
    file = put(tmp_path / os.fsdecode(b"sur\xff.gguf"))
    read = HeaderCache(kept).read(file)
    overwrite_quietly(file)
    assert HeaderCache(kept).read(file) == read
