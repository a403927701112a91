"""Projectors and drafters, in listings and beside local files (02 §12)."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.models.companions import (
    MOST_SHOWN,
    MOST_TOKENS_APART,
    Companions,
    choose_drafter,
    choose_projector,
    drafter_fault,
    drafter_kind,
    families,
    find_companions,
)
from framework.models.gguf_fields import GgufHeader
from framework.models.gguf_tensors import read_tensors
from framework.values.reason import Reason
from tests.models.gguf_bytes import ARRAY, STRING, U32, Array, Tensor, gguf, pair


@pytest.mark.parametrize(
    ("paths", "chosen"),
    [
        (["a/mmproj-BF16.gguf", "mmproj-F16.gguf"], "mmproj-F16.gguf"),
        (["mmproj-b.gguf", "mmproj-a.gguf"], "mmproj-a.gguf"),
        (["mmproj/x.gguf"], None),
        (["mmproj-F16.gguf.part"], None),
        ([], None),
    ],
)
def test_projector_of_a_listing(paths: list[str], chosen: str | None) -> None:
    assert choose_projector(paths) == chosen


def test_families_are_the_beginnings_of_parts() -> None:
    assert families("x/Qwen2.5-VL-llama.gguf") == {"qwen", "llama"}
    assert families("myqwen.gguf") == frozenset()


def model(
    path: Path,
    embedding: int = 2560,
    tokens: int = 2,
    *more: bytes,
    architecture: str = "llama",
) -> Path:
    path.write_bytes(
        gguf(
            pair("general.architecture", STRING, architecture),
            pair(f"{architecture}.embedding_length", U32, embedding),
            pair("tokenizer.ggml.tokens", ARRAY, Array(STRING, ("t",) * tokens)),
            *more,
        )
    )
    return path


def tokenizer(name: str) -> bytes:
    return pair("tokenizer.ggml.model", STRING, name)


def projector(path: Path, projection: int = 2560, *tensors: Tensor) -> Path:
    path.write_bytes(
        gguf(
            pair("general.architecture", STRING, "clip"),
            pair("clip.vision.projection_dim", U32, projection),
            tensors=tensors,
            data=2**16,
        )
    )
    return path


def fault(path: Path, main: Path, *, is_named: bool = False) -> Reason | None:
    return drafter_fault(path, read_tensors(path), main, read_tensors(main), is_named=is_named)


def beside(main: Path) -> Companions:
    return find_companions(main, read_tensors(main), read_tensors)


def test_a_projector_that_suits_the_model(tmp_path: Path) -> None:
    main = model(tmp_path / "gemma-3.gguf")
    path = projector(tmp_path / "mmproj-gemma-3-f16.gguf")
    assert beside(main) == Companions(projector=path)


def test_a_projector_of_another_width_is_not_attached(tmp_path: Path) -> None:
    main = model(tmp_path / "m.gguf")
    path = projector(tmp_path / "mmproj.gguf", 2048)
    found = beside(main)
    assert found.projector is None
    (reason,) = found.reasons
    assert (reason.code, reason.severity) == ("companion_unfit", "warning")
    assert reason.evidence == {
        "path": str(path),
        "model": str(main),
        "projection": 2048,
        "embedding": 2560,
    }
    assert "2048" in reason.message
    assert "2560" in reason.message


def test_a_projector_of_another_family_is_not_attached(tmp_path: Path) -> None:
    main = model(tmp_path / "qwen3.gguf")
    projector(tmp_path / "mmproj-gemma.gguf")
    found = beside(main)
    assert found.projector is None
    assert "families" in found.reasons[0].message


def test_a_text_model_is_no_projector_whatever_its_name(tmp_path: Path) -> None:
    main = model(tmp_path / "m.gguf")
    model(tmp_path / "mmproj-m.gguf")
    found = beside(main)
    assert found.projector is None
    assert "it is a llama model, no projector" in found.reasons[0].message


def test_the_width_of_its_tensors_counts_as_well(tmp_path: Path) -> None:
    main = model(tmp_path / "m.gguf", 64)
    path = projector(tmp_path / "mmproj.gguf", 768, Tensor("mm.2.weight", (32, 64)))
    assert beside(main).projector == path


def test_a_projector_that_is_cut_off_is_not_attached(tmp_path: Path) -> None:
    main = model(tmp_path / "m.gguf")
    path = projector(tmp_path / "mmproj.gguf")
    path.write_bytes(path.read_bytes()[:50])
    found = beside(main)
    assert found.projector is None
    assert "cannot be read" in found.reasons[0].message


def test_among_several_the_one_that_suits_is_taken_and_the_others_are_not_spoken_of(tmp_path: Path) -> None:
    main = model(tmp_path / "m-4b.gguf")
    projector(tmp_path / "mmproj-m-12b.gguf", 3840)
    right = projector(tmp_path / "mmproj-m-4b.gguf")
    assert beside(main) == Companions(projector=right)


def test_of_two_that_suit_the_more_similar_name_is_taken_then_f16(tmp_path: Path) -> None:
    main = model(tmp_path / "vision-tune-a-Q4_0.gguf")
    projector(tmp_path / "mmproj-other-f16.gguf")
    projector(tmp_path / "mmproj-vision-tune-a-bf16.gguf")
    right = projector(tmp_path / "mmproj-vision-tune-a-f16.gguf")
    assert beside(main).projector == right


def test_a_drafter_with_the_same_vocabulary(tmp_path: Path) -> None:
    main = model(tmp_path / "m.gguf")
    path = model(tmp_path / "mtp-m.gguf")
    assert beside(main) == Companions(drafter=path)


def test_a_drafter_with_another_vocabulary_is_not_used(tmp_path: Path) -> None:
    main = model(tmp_path / "m.gguf")
    model(tmp_path / "mtp-m.gguf", tokens=200)
    found = beside(main)
    assert found.drafter is None
    assert found.reasons[0].evidence["vocabulary"] == 200


def test_some_reserved_tokens_more_or_less_are_the_same_vocabulary(tmp_path: Path) -> None:
    main = model(tmp_path / "m.gguf", tokens=10)
    path = model(tmp_path / "mtp-m.gguf", tokens=10 + MOST_TOKENS_APART)
    assert beside(main) == Companions(drafter=path)


@pytest.mark.parametrize(
    ("own", "models", "fits"),
    [
        ("llama", "gpt2", False),
        ("gpt2", "llama", False),
        ("gpt2", "gemma4", True),
        ("llama", "something new", True),
        ("t5", "t5", True),
    ],
)
def test_text_must_be_cut_into_tokens_in_the_same_way(
    tmp_path: Path, own: str, models: str, fits: bool
) -> None:
    main = model(tmp_path / "m.gguf", 64, 2, tokenizer(models))
    path = model(tmp_path / "d.gguf", 64, 2, tokenizer(own))
    reason = fault(path, main)
    assert (reason is None) == fits
    if reason is not None:
        assert (reason.code, reason.severity) == ("companion_unfit", "warning")
        assert "vocabulary is" in reason.message


def test_what_is_no_model_drafts_nothing(tmp_path: Path) -> None:
    main = model(tmp_path / "m.gguf")
    eyes = fault(projector(tmp_path / "eyes.gguf"), main)
    lora = fault(model(tmp_path / "a.gguf", 64, 2, pair("general.type", STRING, "adapter")), main)
    assert eyes is not None
    assert "it is a projector" in eyes.message
    assert lora is not None
    assert "it is an adapter" in lora.message


def test_a_drafter_that_is_cut_off_is_not_used(tmp_path: Path) -> None:
    main, path = model(tmp_path / "m.gguf"), model(tmp_path / "d.gguf")
    path.write_bytes(path.read_bytes()[:40])
    reason = fault(path, main)
    assert reason is not None
    assert "cannot be read" in reason.message


def test_names_of_families_count_only_for_what_nobody_named(tmp_path: Path) -> None:
    main, path = model(tmp_path / "mistral-7b.gguf"), model(tmp_path / "llama-160m.gguf")
    assert fault(path, main) is not None
    assert fault(path, main, is_named=True) is None


def test_names_of_families_count_where_a_vocabulary_is_not_known(tmp_path: Path) -> None:
    main, path = model(tmp_path / "mistral-7b.gguf"), tmp_path / "llama-160m.gguf"
    path.write_bytes(gguf(pair("general.architecture", STRING, "llama")))
    reason = fault(path, main, is_named=True)
    assert reason is not None
    assert "families" in reason.message


@pytest.mark.parametrize("architecture", ["eagle3", "dflash"])
def test_drafters_with_a_vocabulary_of_their_own_may_have_another(tmp_path: Path, architecture: str) -> None:
    main = model(tmp_path / "m.gguf", tokens=1000)
    assert fault(model(tmp_path / "d.gguf", tokens=2, architecture=architecture), main) is None


@pytest.mark.parametrize(
    ("name", "architecture", "kind"),
    [
        ("mtp-gemma-4.gguf", "gemma4-assistant", "mtp"),
        ("assistant.gguf", "gemma4-assistant", "mtp"),
        ("assistant.gguf", "gemma4_assistant", "mtp"),
        ("MTP-x.gguf", "llama", "mtp"),
        ("x.gguf", "eagle3", "eagle3"),
        ("x.gguf", "dflash", "dflash"),
        ("x-mtp.gguf", "llama", "plain"),
        ("eagle3.gguf", "qwen3", "plain"),
        ("x.gguf", None, "plain"),
    ],
)
def test_the_kind_of_a_drafter_is_by_its_name_and_its_architecture(
    name: str, architecture: str | None, kind: str
) -> None:
    assert drafter_kind(name, GgufHeader(architecture=architecture)) == kind


@pytest.mark.parametrize(
    ("paths", "chosen"),
    [
        (["mtp-b.gguf", "mtp-a.gguf", "m.gguf"], "mtp-a.gguf"),
        (["MTP-a-Q8_0.GGUF"], "MTP-a-Q8_0.GGUF"),
        (["MTP/a-Q8_0-MTP.gguf", "MTP/mtp-a.gguf", "x\\mtp-a.gguf"], None),
        (["x-mtp.gguf", "mtp-a.gguf.part", "mtp-a.txt"], None),
        ([], None),
    ],
)
def test_drafter_of_a_listing(paths: list[str], chosen: str | None) -> None:
    assert choose_drafter(paths) == chosen


def test_a_folder_that_cannot_be_listed_has_no_companions(tmp_path: Path) -> None:
    assert find_companions(tmp_path / "gone" / "m.gguf", read_tensors(tmp_path), read_tensors) == Companions()


def test_of_very_many_files_that_do_not_suit_some_are_named(tmp_path: Path) -> None:
    main = model(tmp_path / "m.gguf")
    for number in range(300):
        (tmp_path / f"mmproj-{number}.gguf").write_bytes(b"broken")
    *named, more = beside(main).reasons
    assert len(named) == MOST_SHOWN
    assert more.evidence["more"] == 300 - MOST_SHOWN
    assert "297 more" in more.message
