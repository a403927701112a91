"""Sets whose files do not belong together (02 §4.3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.models.file_set import read_set
from framework.values.reason import Reason, Refused
from tests.models.gguf_bytes import I32, Q4_0_TENSOR, STRING, U16, Tensor, gguf, pair

Q8_0_TENSOR = 8


def part(number: int, count: int, tensors: tuple[Tensor, ...], total: int, architecture: str = "") -> bytes:
    named = (pair("general.architecture", STRING, architecture),) if architecture else ()
    return gguf(
        *named,
        pair("split.no", U16, number),
        pair("split.count", U16, count),
        pair("split.tensors.count", I32, total),
        tensors=tensors,
        data=256,
    )


def write(folder: Path, *files: bytes) -> Path:
    for index, data in enumerate(files, 1):
        (folder / f"m-{index:05d}-of-{len(files):05d}.gguf").write_bytes(data)
    return folder / f"m-00001-of-{len(files):05d}.gguf"


def block(name: str, type_id: int = Q4_0_TENSOR) -> Tensor:
    return Tensor(f"blk.0.{name}.weight", (32,), type_id)


A, B, C = (block(name) for name in "abc")


def refusal(path: Path) -> Reason:
    with pytest.raises(Refused) as refused:
        read_set(path)
    return refused.value.failure.reason


def test_a_later_shard_yields_the_facts_of_the_first(tmp_path: Path) -> None:
    main = write(tmp_path, part(0, 2, (A,), 3, "llama"), part(1, 2, (B, C), 3))
    files, results = read_set(tmp_path / "m-00002-of-00002.gguf")
    assert (files.main, results[0].header.architecture) == (main, "llama")
    assert [note.code for note in files.notes] == ["other_shard_named"]


def test_tensors_must_add_up(tmp_path: Path) -> None:
    reason = refusal(write(tmp_path, part(0, 2, (A,), 4, "llama"), part(1, 2, (B, C), 4)))
    assert reason.code == "shard_set_inconsistent"
    assert (reason.evidence["tensors"], reason.evidence["declared"]) == (3, 4)


def test_a_tensor_in_two_files_is_found(tmp_path: Path) -> None:
    reason = refusal(write(tmp_path, part(0, 2, (A,), 2, "llama"), part(1, 2, (A,), 2)))
    assert (reason.code, reason.evidence["tensor"]) == ("shard_set_inconsistent", A.name)


@pytest.mark.parametrize(
    ("second", "clause"),
    [
        pytest.param(part(0, 2, (B,), 2), "number 1 of the set", id="wrong number"),
        pytest.param(part(1, 3, (B,), 2), "a set of 3 files", id="wrong count"),
        pytest.param(part(1, 2, (B,), 2, "gemma3"), "architecture 'gemma3'", id="another model"),
    ],
)
def test_a_file_of_another_set_is_found(tmp_path: Path, second: bytes, clause: str) -> None:
    reason = refusal(write(tmp_path, part(0, 2, (A,), 2, "llama"), second))
    assert reason.code == "shard_set_inconsistent"
    assert clause in reason.message


def test_a_shard_of_another_variant_is_spoken_of(tmp_path: Path) -> None:
    other = part(1, 2, (block("b", Q8_0_TENSOR),), 2)
    files, _ = read_set(write(tmp_path, part(0, 2, (A,), 2, "llama"), other))
    (note,) = files.notes
    assert (note.code, note.severity) == ("shards_mixed", "warning")
    assert "Q8_0" in note.message


def test_shards_without_split_keys_are_taken_as_they_are(tmp_path: Path) -> None:
    plain = [gguf(pair("general.architecture", STRING, "llama"), tensors=(t,), data=256) for t in (A, B)]
    files, results = read_set(write(tmp_path, *plain))
    assert (files.notes, len(results)) == ((), 2)


def test_parts_that_were_glued_together(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(part(0, 5, (A,), 9, "llama") + part(1, 5, (B,), 9))
    reason = refusal(path)
    assert (reason.code, reason.evidence["status"]) == ("bad_model_file", "unmerged_split")
    assert "one of 5 parts" in reason.message
    assert "--merge" in reason.remedy


def test_a_set_of_one_is_a_whole_model(tmp_path: Path) -> None:
    files, _ = read_set(write(tmp_path, part(0, 1, (A,), 1, "llama")))
    assert (files.shards, files.notes) == ((), ())


def test_tensor_names_nobody_knows_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    tensors = (Tensor("blk.0.ffn_up_exps.weight"), Tensor("something.new", offset=128))
    path.write_bytes(gguf(pair("general.architecture", STRING, "qwen3moe"), tensors=tensors, data=256))
    assert len(read_set(path)[1][0].tensors) == 2
