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


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("gone", "does not exist"),
        ("below a file", "does not exist"),
        ("folder", "is a folder"),
        ("pipe", "is no regular file"),
        ("long", "cannot be read: file name too long"),
        ("loop", "cannot be read: too many levels of symbolic links"),
    ],
)
def test_one_that_is_no_file_is_left_out_with_the_reason(
    main: Path, tmp_path: Path, kind: str, why: str
) -> None:
    path = tmp_path / "d.gguf"
    if kind == "folder":
        path.mkdir()
    elif kind == "below a file":
        path = main / "d.gguf"
    elif kind == "long":
        path = tmp_path / f"{'d' * 300}.gguf"
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "pipe":
        os.mkfifo(path)
    found = found_for(naming(path), local(main))
    (reason,) = found.reasons
    assert (found.path, reason.code, reason.severity) == (None, "drafter_missing", "warning")
    assert reason.message == f"The drafter {path} {why}; the model runs without it."


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


@pytest.mark.parametrize(
    ("mode", "name", "architecture", "other_mode"),
    [
        pytest.param("eagle3", "d.gguf", "llama", "draft", id="eagle3 with a whole model"),
        pytest.param("dflash", "d.gguf", "eagle3", "eagle3", id="dflash with eagle3"),
        pytest.param("draft", "d.gguf", "eagle3", "eagle3", id="draft with eagle3"),
        pytest.param("draft", "mtp-d.gguf", "gemma4-assistant", "mtp", id="draft with a head"),
        pytest.param("mtp", "d.gguf", "llama", "draft", id="mtp with a whole model"),
        pytest.param("mtp+ngram", "d.gguf", "dflash", "dflash", id="mtp+ngram with dflash"),
    ],
)
def test_one_of_another_kind_than_the_mode_takes_is_left_out(
    main: Path, tmp_path: Path, mode: str, name: str, architecture: str, other_mode: str
) -> None:
    path = write_model(tmp_path / name, architecture=architecture)
    found = found_for(SpecPolicy(mode, drafter=ModelSource(path=path)), local(main))
    (reason,) = found.reasons
    assert (found.path, reason.code, reason.severity) == (None, "companion_unfit", "warning")
    assert f"architecture {architecture}), and the mode {mode} takes" in reason.message
    assert reason.remedy.startswith(f"Set the mode to {other_mode} ")


@pytest.mark.parametrize(
    ("mode", "name", "architecture", "kind"),
    [
        pytest.param("auto", "d.gguf", "eagle3", "eagle3", id="auto takes what there is"),
        pytest.param("mtp", "mtp-d.gguf", "llama", "mtp", id="a head by its name"),
        pytest.param("draft", "mtp-d.gguf", "llama", "plain", id="a whole model whatever its name"),
        pytest.param("dflash", "d.gguf", "dflash", "dflash", id="dflash"),
    ],
)
def test_one_of_the_kind_that_the_mode_takes_is_used(
    main: Path, tmp_path: Path, mode: str, name: str, architecture: str, kind: str
) -> None:
    path = write_model(tmp_path / name, architecture=architecture)
    found = found_for(SpecPolicy(mode, drafter=ModelSource(path=path)), local(main))
    assert (found.path, found.kind, found.reasons) == (path, kind, ())


def test_the_model_as_its_own_drafter_is_used_with_a_word_about_it(main: Path, tmp_path: Path) -> None:
    link = tmp_path / "other-name.gguf"
    link.symlink_to(main)
    for path in (main, link):
        found = found_for(naming(path), local(main))
        assert (found.path, [reason.code for reason in found.reasons]) == (path, ["drafter_is_model"])
