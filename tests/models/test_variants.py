"""Which files of a repository are a variant (02 §4)."""

from __future__ import annotations

import pytest

from framework.models.variants import (
    choose_variant,
    complete_sets,
    file_sets,
    missing_shards,
    variant_paths,
)
from framework.values.reason import Reason, Refused

TAGS = ["M-Compact.gguf", "M-I-Compact.gguf", "M-UD-Q4_K_XL.gguf", "M-Q4_K_M.gguf"]
SPLIT = ["Q8_0/m-Q8_0-00001-of-00002.gguf", "Q8_0/m-Q8_0-00002-of-00002.gguf"]


def refusal(paths: list[str], variant: str | None = None) -> Reason:
    with pytest.raises(Refused) as refused:
        choose_variant(paths, variant, repo="o/r")
    return refused.value.failure.reason


@pytest.mark.parametrize(
    ("asked", "main", "notes"),
    [
        ("Compact", "M-Compact.gguf", 0),
        ("I-Compact", "M-I-Compact.gguf", 0),
        ("q4_k_m", "M-Q4_K_M.gguf", 0),
        (" Q4_K_M ", "M-Q4_K_M.gguf", 0),
        ("UD-Q4_K_XL", "M-UD-Q4_K_XL.gguf", 0),
        ("Q4_K_XL", "M-UD-Q4_K_XL.gguf", 1),
    ],
)
def test_short_tags(asked: str, main: str, notes: int) -> None:
    found = choose_variant(TAGS, asked)
    assert (found.main, len(found.notes)) == (main, notes)


def test_the_note_on_a_partial_tag_says_what_was_taken() -> None:
    (note,) = choose_variant(TAGS, "Q4_K_XL").notes
    assert (note.code, note.severity) == ("variant_by_part", "info")
    assert "UD-Q4_K_XL" in note.message


def test_a_tag_that_fits_several_variants_is_an_error_with_the_candidates() -> None:
    reason = refusal(TAGS, "q4_k")
    assert reason.code == "variant_unclear"
    assert reason.evidence["candidates"] == ["Q4_K_M", "UD-Q4_K_XL"]


def test_a_tag_that_fits_nothing_lists_what_there_is() -> None:
    reason = refusal(TAGS, "Q2_K")
    assert reason.message == (
        "There is no variant 'Q2_K' in o/r; there are: M-Compact.gguf, M-I-Compact.gguf, Q4_K_M, UD-Q4_K_XL."
    )


def test_helper_files_are_not_models() -> None:
    listing = ["mmproj-F16.gguf", "MTP/mtp-m-Q8_0.gguf", "imatrix_x.gguf", "m-UD-Q4_K_XL.gguf", "README.md"]
    assert choose_variant(listing).main == "m-UD-Q4_K_XL.gguf"


def test_without_a_tag_the_usual_variant_is_taken() -> None:
    assert choose_variant(["m-Q8_0.gguf", "m-Q4_K_M.gguf"]).label == "Q4_K_M"


def test_without_a_tag_a_single_set_is_taken() -> None:
    found = choose_variant(SPLIT)
    assert (found.main, found.shards, found.label) == (SPLIT[0], (SPLIT[1],), "Q8_0")
    assert choose_variant(["model.gguf"]).main == "model.gguf"


def test_without_a_tag_several_variants_are_an_error_with_the_labels() -> None:
    reason = refusal(["m-Q8_0.gguf", "m-Q5_0.gguf"])
    assert (reason.code, reason.evidence["candidates"]) == ("variant_unclear", ["Q5_0", "Q8_0"])


def test_a_repository_without_models() -> None:
    assert "no model file" in refusal(["README.md"]).message


def test_two_files_of_one_label_are_an_error_that_names_the_files() -> None:
    assert refusal(["a-Q8_0.gguf", "b-Q8_0.gguf"], "Q8_0").evidence["candidates"] == [
        "a-Q8_0.gguf",
        "b-Q8_0.gguf",
    ]


def test_an_incomplete_set_names_what_is_missing() -> None:
    reason = refusal([SPLIT[1]], "Q8_0")
    assert (reason.code, reason.evidence["missing"]) == ("incomplete_set", [1])


def test_an_absurd_total_stays_a_short_message() -> None:
    reason = refusal(["m-Q8_0-00001-of-99999.gguf"], "Q8_0")
    assert len(reason.message) < 300
    assert reason.evidence["missing_count"] == 99_998


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("q4_k", ["m-Q4_K_M.gguf"]),
        ("q4_k_xl", ["m-UD-Q4_K_XL.gguf"]),
        ("", ["m-Q4_K_M.gguf", "m-UD-Q4_K_XL.gguf"]),
        (None, ["m-Q4_K_M.gguf", "m-UD-Q4_K_XL.gguf"]),
    ],
)
def test_paths_of_a_variant(key: str | None, expected: list[str]) -> None:
    listing = ["m-UD-Q4_K_XL.gguf", "m-Q4_K_M.gguf"] if key != "q4_k" else ["m-Q4_K_M.gguf", "m-Q8_0.gguf"]
    assert variant_paths(listing, key) == expected


def test_a_label_in_a_directory_counts() -> None:
    assert variant_paths(["BF16/m.gguf", "m-Q8_0.gguf"], "bf16") == ["BF16/m.gguf"]


def test_twins_of_the_other_byte_order_are_never_chosen() -> None:
    assert variant_paths(["m-Q8_0.gguf", "m-Q8_0-be.gguf"], "q8_0") == ["m-Q8_0.gguf"]


def test_files_are_grouped_into_sets() -> None:
    assert file_sets(["x.gguf", *reversed(SPLIT)]) == [tuple(SPLIT), ("x.gguf",)]


def test_all_complete_variants() -> None:
    found = complete_sets([*SPLIT, "m-Q4_0.gguf", "n-00002-of-00002.gguf", "mmproj-F16.gguf"])
    assert [(variant.main, variant.label) for variant in found] == [
        (SPLIT[0], "Q8_0"),
        ("m-Q4_0.gguf", "Q4_0"),
    ]
    assert found[0].paths == tuple(SPLIT)


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        (SPLIT, []),
        (["m.gguf"], []),
        (["m-00001-of-00001.gguf"], []),
        (["m-00001-of-00003.gguf", "m-00003-of-00003.gguf"], [2]),
        (["m-00001-of-00001.gguf", "m-00002-of-00001.gguf"], [2]),
    ],
)
def test_missing_shards(files: list[str], missing: list[int]) -> None:
    assert missing_shards(files) == missing
