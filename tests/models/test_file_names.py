"""Names of files and repositories (02 §3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.models.file_names import (
    billions,
    is_big_endian,
    is_companion,
    is_gguf,
    is_helper,
    label,
    names_gemma_4,
    other_shards,
    repo_of_url,
    shard,
)


def test_parts_of_a_shard() -> None:
    found = shard("sub/m-x-00002-of-00010.GGUF")
    assert found is not None
    assert (found.prefix, found.index, found.total) == ("sub/m-x", 2, "00010")
    assert found.name(3) == "sub/m-x-00003-of-00010.gguf"


@pytest.mark.parametrize(
    "name", ["best-of-breed.gguf", "m-1-of-2.gguf", "-00001-of-00002.gguf", "m-00001-of-00002.gguf.part"]
)
def test_names_that_are_no_shards(name: str) -> None:
    assert shard(name) is None


@pytest.mark.parametrize(
    ("name", "possible"),
    [
        ("m-00001-of-00001.gguf", True),
        ("x-00000-of-00003.gguf", False),
        ("x-00004-of-00003.gguf", False),
    ],
)
def test_numbers_of_shards_run_from_one_to_the_total(name: str, possible: bool) -> None:
    found = shard(name)
    assert found is not None
    assert found.possible == possible


def test_other_shards_share_prefix_and_total() -> None:
    names = [
        "a-00002-of-00002.gguf",
        "a-00001-of-00002.gguf",
        "a-00002-of-00003.gguf",
        "b-00002-of-00002.gguf",
    ]
    assert other_shards(names, "a-00001-of-00002.gguf") == ("a-00002-of-00002.gguf",)
    assert other_shards(names, "single.gguf") == ()


@pytest.mark.parametrize("name", ["m.gguf.part", "m.gguf.incomplete", "m.gguf.tmp", "m.safetensors"])
def test_parts_of_downloads_are_no_models(name: str) -> None:
    assert not is_gguf(name)


@pytest.mark.parametrize(
    ("path", "companion"),
    [
        ("mmproj-F16.gguf", True),
        ("sub/mmproj/x.gguf", True),
        ("mtp-x.gguf", True),
        ("MTP/x-Q8_0-MTP.gguf", True),
        ("a/mtp-b.gguf", True),
        ("x\\MTP\\y.gguf", True),
        ("x-mtp.gguf", False),
        ("mtp.txt", False),
    ],
)
def test_companions(path: str, companion: bool) -> None:
    assert is_companion(path) == companion


def test_an_importance_matrix_is_no_model() -> None:
    assert is_helper("sub/imatrix_x.gguf")
    assert not is_helper("m-imatrix-Q4_0.gguf")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("Qwen3-8B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("gpt-oss-20b-MXFP4_MOE.gguf", "MXFP4_MOE"),
        ("m-Q4_K_M-00001-of-00003.gguf", "Q4_K_M"),
        ("F16-to-Q8_0.gguf", "Q8_0"),
        ("BF16/m-00001-of-00002.gguf", "BF16"),
        ("Q4_0/m-Q8_0.gguf", "Q8_0"),
        ("llama-2-7b.Q5_0.gguf", "Q5_0"),
        ("m-IQ2_XXS.gguf", "IQ2_XXS"),
        ("m-TQ1_0.gguf", "TQ1_0"),
        ("m-Q6_K.gguf", "Q6_K"),
        ("m-q4_k_m.gguf", "q4_k_m"),
        ("abQ4_0x.gguf", None),
        ("m.gguf", None),
    ],
)
def test_labels(path: str, expected: str | None) -> None:
    assert label(path) == expected


@pytest.mark.parametrize(
    ("path", "key", "swapped"),
    [
        ("stories260K-be.gguf", "stories260k", True),
        ("stories260K-be.gguf", None, True),
        ("model-be-Q4_K_M.gguf", "Q4_K_M", False),
        ("be-model-Q4_K_M.gguf", "q4_k_m", False),
        ("model-Q4_K_M-be.gguf", "Q4_K_M", True),
        ("Q4_K_M/model-be.gguf", "Q4_K_M", False),
        ("Q4_K_M/model-be.gguf", None, False),
        ("model-be.gguf", "Q4_K_M", True),
        ("model_be_v2.gguf", None, True),
        ("be.gguf", None, True),
        ("maybe-x.gguf", None, False),
        ("beta-Q8_0.gguf", None, False),
    ],
)
def test_twins_of_the_other_byte_order(path: str, key: str | None, swapped: bool) -> None:
    assert is_big_endian(path, key) == swapped


@pytest.mark.parametrize(
    ("url", "repo"),
    [
        ("https://huggingface.co/a/b/tree/main", "a/b"),
        ("https://huggingface.co/a/b?x=1#y", "a/b"),
        ("huggingface.co/a/b/", "a/b"),
        ("https://huggingface.co/a", None),
        ("https://example.org/a/b", None),
        ("https://huggingface.co/datasets/a/b", None),
        ("https://huggingface.co/spaces/a/b", None),
        ("https://huggingface.co/../b", None),
        ("https://[bad/a/b", None),
        ("", None),
        (None, None),
    ],
)
def test_repository_of_an_address(url: str | None, repo: str | None) -> None:
    assert repo_of_url(url) == repo


@pytest.mark.parametrize(
    ("model_id", "size_label", "expected"),
    [
        ("org/Qwen3-30B-A3B-GGUF", None, 30),
        ("Qwen3.5-0.8B", None, 0.8),
        ("gemma-4-E2B-it", None, 2),
        ("Mixtral-8x7B", None, 56),
        ("smollm2-135M", None, 0.135),
        ("gpt-oss", None, None),
        ("DeepSeek-V3.1", None, None),
        ("gpt-oss", "20B", 20),
        ("8b/name", None, None),
        ("Model-4bit", None, None),
        (None, "E4B", 4),
        (None, None, None),
    ],
)
def test_billions_of_parameters(model_id: str | None, size_label: str | None, expected: float | None) -> None:
    assert billions(model_id, size_label) == (None if expected is None else pytest.approx(expected))


@given(st.text(max_size=80))
def test_any_name_can_be_asked_about(name: str) -> None:
    for ask in (shard, is_gguf, is_companion, is_helper, label, is_big_endian, repo_of_url, billions):
        ask(name)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "is_family"),
    [
        ("gemma-4-E2B", True),
        ("gemma_4_x", True),
        ("org/GEMMA4-12b", True),
        ("gemma4", False),
        ("gemma-3n-E4B", False),
        ("gemma--4-x", False),
        ("", False),
    ],
)
def test_the_family_that_drafts_with_a_file_of_its_own(name: str, is_family: bool) -> None:
    assert names_gemma_4(name) == is_family
    assert names_gemma_4("other", name) == is_family
