"""The drafter of a launch: named by its policy, or of the model's repository (02 §12.6, 05 §5.6)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from framework.models.drafter import FoundDrafter, find_drafter
from framework.models.facts import FactsReader
from framework.models.header_cache import HeaderCache
from framework.models.hub.facts import ResolvedSource
from framework.values.reason import Reason
from framework.values.request import ModelSource, SpecPolicy
from tests.models.gguf_bytes import U32, pair
from tests.models.test_companions import model as write_model

NOTE = Reason("companion_not_fetched", "The hub is down.", "Wait.", "warning")
AUTO = SpecPolicy()


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A model."""
    return write_model(tmp_path / "m.gguf")


def local(main: Path) -> ResolvedSource:
    return ResolvedSource(ModelSource(path=main), main, (main,))


def naming(path: Path) -> SpecPolicy:
    return SpecPolicy("draft", drafter=ModelSource(path=path))


def found_for(policy: SpecPolicy, source: ResolvedSource) -> FoundDrafter:
    """What is found, with a reader that keeps nothing on disk."""
    reader = FactsReader(HeaderCache())
    return find_drafter(policy, source, reader.read(source.main), reader)


def test_the_one_that_the_policy_names_is_used(main: Path, tmp_path: Path) -> None:
    (tmp_path / "draft").mkdir()
    path = write_model(tmp_path / "draft" / "d.gguf")
    found = found_for(naming(path), local(main))
    assert (found.path, found.kind, found.reasons) == (path, "plain", ())
    assert found.files is not None
    assert found.files.total_bytes == path.stat().st_size


def test_nothing_is_searched_beside_a_local_model(main: Path) -> None:
    write_model(main.with_name("mtp-m.gguf"))
    assert found_for(AUTO, local(main)) == FoundDrafter()


def test_what_came_from_the_repository_is_used(main: Path, tmp_path: Path) -> None:
    path = write_model(tmp_path / "mtp-x.gguf")
    source = replace(local(main), source=ModelSource(repo="o/r"), drafter=path)
    assert (found_for(AUTO, source).path, found_for(AUTO, source).kind) == (path, "mtp")


def test_a_path_counts_for_more_than_what_came_from_the_repository(main: Path, tmp_path: Path) -> None:
    other, path = write_model(tmp_path / "mtp-x.gguf"), write_model(tmp_path / "d.gguf")
    assert found_for(naming(path), replace(local(main), drafter=other)).path == path


@pytest.mark.parametrize("kind", ["gone", "folder", "pipe"])
def test_one_that_is_no_file_is_left_out_with_the_reason(main: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "d.gguf"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    found = found_for(naming(path), local(main))
    (reason,) = found.reasons
    assert (found.path, reason.code, reason.severity) == (None, "drafter_missing", "warning")
    assert str(path) in reason.message


@pytest.mark.parametrize("content", [b"", b"hello world, this is no model", b"GGUF\3\0\0\0"])
def test_one_that_cannot_be_read_is_left_out_with_the_reason(
    main: Path, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "d.gguf"
    path.write_bytes(content)
    found = found_for(naming(path), local(main))
    (reason,) = found.reasons
    assert (found.path, reason.code) == (None, "companion_unfit")
    assert reason.message.startswith("d.gguf is not used with m.gguf: ")


def test_one_with_another_vocabulary_is_left_out_and_another_is_asked_for(main: Path, tmp_path: Path) -> None:
    path = write_model(tmp_path / "d.gguf", tokens=500)
    found = found_for(naming(path), local(main))
    (reason,) = found.reasons
    assert (found.path, reason.code, reason.evidence["vocabulary"]) == (None, "companion_unfit", 500)
    assert "`draft`" in reason.remedy


def test_a_set_with_a_part_missing_is_left_out(main: Path, tmp_path: Path) -> None:
    path = write_model(tmp_path / "d-00001-of-00002.gguf")
    (reason,) = found_for(naming(path), local(main)).reasons
    assert (reason.code, reason.evidence["cause"]) == ("companion_unfit", "incomplete_set")


def test_why_there_is_none_is_passed_on(main: Path) -> None:
    source = replace(local(main), source=ModelSource(repo="o/r"), drafter_notes=(NOTE,))
    assert found_for(AUTO, source) == FoundDrafter(reasons=(NOTE,))


def test_a_model_with_a_head_needs_no_drafter_of_its_repository(tmp_path: Path) -> None:
    main = write_model(tmp_path / "m.gguf", 64, 2, pair("llama.nextn_predict_layers", U32, 1))
    source = replace(local(main), source=ModelSource(repo="o/r"), drafter_notes=(NOTE,))
    assert found_for(AUTO, source) == FoundDrafter()
    named = SpecPolicy("mtp", drafter=ModelSource(repo="o/d"))
    assert found_for(named, source).reasons == (NOTE,)
