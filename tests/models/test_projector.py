"""The projector of a launch: named, found beside the model, or of its repository (02 §12.6, §12.7)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from framework.models.companions import Companion
from framework.models.facts import FactsReader
from framework.models.header_cache import HeaderCache
from framework.models.hub.facts import ResolvedSource
from framework.models.hub.pins import note_none
from framework.models.projector import launch_projector
from framework.values.reason import Refused
from framework.values.request import ModelSource
from tests.models.test_companions import model as write_model
from tests.models.test_companions import projector as write_projector


@pytest.fixture
def reader() -> FactsReader:
    """A reader that keeps nothing on disk."""
    return FactsReader(HeaderCache())


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A model alone in its folder."""
    folder = tmp_path / "models"
    folder.mkdir()
    return write_model(folder / "gemma-3.gguf")


def local(main: Path) -> ResolvedSource:
    return ResolvedSource(ModelSource(path=main), main, (main,))


def of_a_hub(main: Path, projector: Path | None) -> ResolvedSource:
    return replace(local(main), source=ModelSource(repo="o/r"), projector=projector)


def test_text_only_is_text_only_whatever_lies_there(main: Path, reader: FactsReader) -> None:
    write_projector(main.with_name("mmproj.gguf"))
    assert launch_projector(None, local(main), reader.read(main), reader) == Companion()


def test_the_one_beside_the_model_is_found(main: Path, reader: FactsReader) -> None:
    path = write_projector(main.with_name("mmproj.gguf"))
    assert launch_projector("auto", local(main), reader.read(main), reader) == Companion(path)


def test_without_one_the_model_serves_text_and_says_so(main: Path, reader: FactsReader) -> None:
    found = launch_projector("auto", local(main), reader.read(main), reader)
    assert (found.path, [reason.code for reason in found.reasons]) == (None, ["projector_not_found"])


def test_a_repository_that_was_asked_and_has_none_is_told(tmp_path: Path, reader: FactsReader) -> None:
    snapshot = tmp_path / "models--o--r" / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    main = write_model(snapshot / "gemma-3.gguf")
    assert launch_projector("auto", of_a_hub(main, None), reader.read(main), reader) == Companion()
    note_none(main, "projector")
    found = launch_projector("auto", of_a_hub(main, None), reader.read(main), reader)
    assert [reason.code for reason in found.reasons] == ["projector_not_found"]


def test_one_of_another_model_is_left_out_with_the_reason(main: Path, reader: FactsReader) -> None:
    write_projector(main.with_name("mmproj.gguf"), 2048)
    found = launch_projector("auto", local(main), reader.read(main), reader)
    assert (found.path, [reason.severity for reason in found.reasons]) == (None, ["warning"])


def test_a_model_of_a_hub_takes_that_of_its_repository(
    main: Path, reader: FactsReader, tmp_path: Path
) -> None:
    path = write_projector(tmp_path / "mmproj-F16.gguf")
    write_projector(main.with_name("mmproj-stray.gguf"))
    facts = reader.read(main)
    assert launch_projector("auto", of_a_hub(main, path), facts, reader) == Companion(path)
    assert launch_projector("auto", of_a_hub(main, None), facts, reader) == Companion()


def test_one_of_the_repository_that_does_not_suit_is_left_out(
    main: Path, reader: FactsReader, tmp_path: Path
) -> None:
    path = write_projector(tmp_path / "mmproj-qwen.gguf")
    found = launch_projector("auto", of_a_hub(main, path), reader.read(main), reader)
    assert (found.path, found.reasons[0].code) == (None, "companion_unfit")


def test_a_named_one_is_used(main: Path, reader: FactsReader, tmp_path: Path) -> None:
    path = write_projector(tmp_path / "eyes.gguf")
    assert launch_projector(path, local(main), reader.read(main), reader) == Companion(path)


@pytest.mark.parametrize("kind", ["gone", "other width", "cut off", "folder", "no GGUF", "long"])
def test_a_named_one_that_cannot_work_is_refused(
    main: Path, reader: FactsReader, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "eyes.gguf"
    if kind == "other width":
        write_projector(path, 2048)
    elif kind == "cut off":
        path.write_bytes(write_projector(path).read_bytes()[:40])
    elif kind == "folder":
        path.mkdir()
    elif kind == "no GGUF":
        path.write_text("hello")
    elif kind == "long":
        path = tmp_path / f"{'e' * 300}.gguf"
    with pytest.raises(Refused) as caught:
        launch_projector(path, local(main), reader.read(main), reader)
    reason = caught.value.failure.reason
    assert (reason.code, reason.severity) == (
        "model_missing" if kind == "gone" else "companion_unfit",
        "error",
    )
    assert str(path) in reason.message or path.name in reason.message
    assert reason.message.count("cannot be read") <= 1
