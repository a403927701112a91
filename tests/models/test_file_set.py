"""Shards, and files that no engine could load (02 §3.1-3.3, 06 §14.2)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from framework.models.file_set import FileSet, check_model_file, resolve_files
from framework.values.reason import Failure, Refused
from tests.models.gguf_bytes import STRING, gguf, llama, pair


def put(folder: Path, *names: str, data: bytes = b"x") -> list[Path]:
    for name in names:
        (folder / name).write_bytes(data)
    return [folder / name for name in names]


def refusal(act: Callable[[Path], FileSet], path: Path) -> Failure:
    with pytest.raises(Refused) as refused:
        act(path)
    return refused.value.failure


def test_a_single_file_is_a_set(tmp_path: Path) -> None:
    (path,) = put(tmp_path, "m.gguf", data=b"1234")
    found = resolve_files(path)
    assert (found.main, found.shards, found.total_bytes) == (path, (), 4)


def test_shards_of_one_set_count_together(tmp_path: Path) -> None:
    first, second = put(tmp_path, "m-00001-of-00002.gguf", "m-00002-of-00002.gguf")
    put(tmp_path, "m-00001-of-00003.gguf", data=bytes(50))
    put(tmp_path, "n-00002-of-00002.gguf", data=bytes(50))
    found = resolve_files(first)
    assert (found.main, found.shards, found.total_bytes) == (first, (second,), 2)
    assert [file.path for file in found.files] == [first, second]


def test_any_shard_names_the_set(tmp_path: Path) -> None:
    paths = put(tmp_path, *(f"m-0000{i}-of-00003.GGUF" for i in (1, 2, 3)))
    found = resolve_files(paths[2])
    assert (found.main, found.shards) == (paths[0], (paths[1], paths[2]))
    assert [note.code for note in found.notes] == ["other_shard_named"]
    assert resolve_files(paths[0]).notes == ()


def test_missing_shards_are_named(tmp_path: Path) -> None:
    (path,) = put(tmp_path, "m-00002-of-00006.gguf")
    reason = refusal(resolve_files, path).reason
    assert reason.code == "incomplete_set"
    assert reason.message == (
        f"5 of 6 files of the model are missing in {tmp_path}: m-00001-of-00006.gguf, "
        "m-00003-of-00006.gguf, m-00004-of-00006.gguf and 2 more."
    )


def test_a_shard_that_is_named_and_missing_is_a_missing_model(tmp_path: Path) -> None:
    put(tmp_path, "m-00001-of-00002.gguf")
    assert refusal(resolve_files, tmp_path / "m-00002-of-00002.gguf").reason.code == "model_missing"


@pytest.mark.parametrize("name", ["x-00000-of-00003.gguf", "x-00004-of-00003.gguf"])
def test_impossible_names_of_shards_are_refused(tmp_path: Path, name: str) -> None:
    (path,) = put(tmp_path, name)
    reason = refusal(resolve_files, path).reason
    assert (reason.code, reason.evidence["status"]) == ("bad_model_file", "impossible_name")


@pytest.mark.parametrize("name", ["best-of-breed.gguf", "m-00001-of-00001.gguf", "m-0001-of-0002.gguf"])
def test_names_that_only_look_like_shards_are_single_files(tmp_path: Path, name: str) -> None:
    (path,) = put(tmp_path, name)
    assert resolve_files(path).shards == ()


@pytest.mark.parametrize("name", ["gone.gguf", "file/below.gguf"])
def test_a_missing_model(tmp_path: Path, name: str) -> None:
    put(tmp_path, "file")
    failure = refusal(check_model_file, tmp_path / name)
    assert (failure.reason.code, failure.retryable) == ("model_missing", False)
    assert failure.reason.message == f"{tmp_path / name} does not exist."


def test_a_whole_model_passes(tmp_path: Path) -> None:
    (path,) = put(tmp_path, "m.gguf", data=llama())
    assert check_model_file(path).total_bytes == len(llama())


ARCH = pair("general.architecture", STRING, "llama")


@pytest.mark.parametrize(
    ("data", "status", "sentence"),
    [
        pytest.param(b"hello", "not_gguf", "is not a GGUF file (starts with 'hell').", id="another file"),
        pytest.param(
            llama()[:-5],
            "truncated",
            f"is cut off: it has {len(llama()) - 5} of at least {len(llama())} bytes, "
            "and tensor 'w' is the first cut one.",
            id="cut data",
        ),
        pytest.param(
            llama()[:150],
            "truncated",
            "is cut off: the header does not end within the file.",
            id="cut header",
        ),
        pytest.param(b"", "unreadable", "is empty.", id="empty"),
        pytest.param(
            gguf(ARCH, version=b"\0\0\0\3"),
            "big_endian",
            "is big-endian; only little-endian files can be served.",
            id="big-endian",
        ),
        pytest.param(
            gguf(ARCH, version=b"\1\0\0\0"),
            "unsupported_version",
            "has GGUF version 1; 2 is the first supported.",
            id="version 1",
        ),
    ],
)
def test_a_file_no_engine_could_load(tmp_path: Path, data: bytes, status: str, sentence: str) -> None:
    (path,) = put(tmp_path, "m.gguf", data=data)
    reason = refusal(check_model_file, path).reason
    assert (reason.code, reason.message) == ("bad_model_file", f"{path} {sentence}")
    assert (reason.evidence["status"], reason.evidence["path"]) == (status, str(path))
    assert reason.remedy


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        pytest.param(Path.mkdir, "is a directory.", id="directory"),
        pytest.param(os.mkfifo, "is not a regular file.", id="pipe"),
    ],
)
def test_what_is_no_file(tmp_path: Path, make: Callable[[Path], None], sentence: str) -> None:
    make(tmp_path / "m.gguf")
    assert (
        refusal(check_model_file, tmp_path / "m.gguf").reason.message == f"{tmp_path / 'm.gguf'} {sentence}"
    )


def test_a_link_that_leads_nowhere_is_missing(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").symlink_to(tmp_path / "gone")
    assert refusal(check_model_file, tmp_path / "m.gguf").reason.code == "model_missing"


def test_a_link_that_leads_to_itself_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").symlink_to(tmp_path / "m.gguf")
    reason = refusal(check_model_file, tmp_path / "m.gguf").reason
    assert (reason.code, "too many levels" in reason.message) == ("bad_model_file", True)


def test_every_shard_is_looked_at(tmp_path: Path) -> None:
    put(tmp_path, "m-00001-of-00002.gguf", data=llama())
    put(tmp_path, "m-00002-of-00002.gguf", data=llama()[:-1])
    reason = refusal(check_model_file, tmp_path / "m-00001-of-00002.gguf").reason
    assert reason.evidence["path"] == str(tmp_path / "m-00002-of-00002.gguf")
