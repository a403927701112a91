"""Which layers have a sliding window (02 §5)."""

from __future__ import annotations

from typing import Any

import pytest

from framework.models.gguf_fields import GgufHeader
from framework.models.swa_pattern import built_in_pattern, mask_of, with_window


def flags(text: str) -> tuple[bool, ...]:
    return tuple(letter == "T" for letter in text)


@pytest.mark.parametrize(
    ("entry", "layers", "mask"),
    [
        (6, 12, "TTTTTFTTTTTF"),
        (3, 6, "TTFTTF"),
        (1, 3, "FFF"),
        ((True, False, False), 4, "TFFT"),
    ],
)
def test_masks(entry: int | tuple[bool, ...], layers: int, mask: str) -> None:
    assert mask_of(entry, layers) == flags(mask)


@pytest.mark.parametrize(
    ("architecture", "entry"),
    [("gemma3", 6), ("gpt-oss", 2), ("gpt_oss", 2), ("cohere2", 4), ("phi3", None), ("", None), (None, None)],
)
def test_patterns_that_are_built_in(architecture: str | None, entry: int | None) -> None:
    assert built_in_pattern(architecture, 7) == entry


def header(**facts: Any) -> GgufHeader:
    return GgufHeader(**{"architecture": "gemma3", "n_layers": 7, "sliding_window": 1024, **facts})


def test_a_window_gets_its_mask() -> None:
    assert with_window(header()).swa_mask == flags("TTTTTFT")


def test_the_mask_of_the_header_stays() -> None:
    assert with_window(header(swa_mask=flags("TF"))).swa_mask == flags("TF")


@pytest.mark.parametrize(
    "facts",
    [{"sliding_window": 0}, {"sliding_window": None}, {"is_diffusion": True}, {"n_layers": None}],
    ids=["no window", "unset window", "diffusion", "no layers"],
)
def test_where_there_is_no_mask(facts: dict[str, Any]) -> None:
    assert with_window(header(**facts)).swa_mask is None


@pytest.mark.parametrize(
    ("architecture", "layers", "window"),
    [
        ("llama4", 48, 8192),
        ("gemma2", 26, 4096),
        ("exaone4", 64, 4096),
        ("exaone4", 30, None),
        ("llama", 8, None),
    ],
)
def test_windows_that_the_engine_has_built_in(architecture: str, layers: int, window: int | None) -> None:
    found = with_window(header(architecture=architecture, n_layers=layers, sliding_window=None))
    assert found.sliding_window == window
    assert (found.swa_mask is None) == (window is None)


def test_an_absurd_layer_count_gets_no_mask() -> None:
    assert with_window(header(n_layers=2**40)).swa_mask is None
