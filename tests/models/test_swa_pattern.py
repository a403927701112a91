"""Which layers have a sliding window (02 §5)."""

from __future__ import annotations

from typing import Any

import pytest

from framework.models.gguf_fields import GgufHeader, OriginHints
from framework.models.swa_pattern import (
    PatternSources,
    entry_of,
    entry_of_config,
    entry_of_layer_types,
    find_pattern,
    mask_of,
    repositories,
    with_window,
)

NOWHERE = OriginHints()


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
    ("value", "entry"),
    [
        (6, 6),
        ([1, 0], (True, False)),
        (0, None),
        (-1, None),
        (True, None),
        ([], None),
        ("6", None),
        (None, None),
        (2.0, None),
    ],
)
def test_values_as_entries(value: object, entry: object) -> None:
    assert entry_of(value) == entry


@pytest.mark.parametrize(
    ("types", "entry"),
    [
        (["sliding_attention"] * 5 + ["full_attention"], 6),
        (["full_attention"] * 3, 1),
        (["sliding_attention"] * 4, flags("TTTT")),
        (["full_attention", "sliding_attention"], flags("FT")),
        ([], None),
        ("full", None),
        (None, None),
    ],
)
def test_layer_types(types: object, entry: object) -> None:
    assert entry_of_layer_types(types) == entry


@pytest.mark.parametrize(
    ("config", "entry"),
    [
        ({"sliding_window_pattern": 6}, 6),
        ({"text_config": {"sliding_window_pattern": 4}, "sliding_window_pattern": 6}, 4),
        ({"sliding_window_pattern": 0, "layer_types": ["full_attention"]}, 1),
        ({"sliding_window_pattern": True, "layer_types": ["sliding", "full"]}, 2),
        ({"text_config": None, "layer_types": ["sliding", "full"]}, 2),
        ({}, None),
    ],
)
def test_configurations(config: dict[str, Any], entry: object) -> None:
    assert entry_of_config(config) == entry


def test_repositories_in_order() -> None:
    origin = OriginHints(
        source_url="https://huggingface.co/o/n/tree/main", base_organization="My Org", base_name="A b c"
    )
    assert repositories(origin) == ("o/n", "My-Org/A-b-c")
    assert repositories(OriginHints(hf_repository="a/b", organization="x")) == ("a/b",)


@pytest.mark.parametrize(
    ("architecture", "entry"),
    [("gemma3", 6), ("gpt-oss", 2), ("gpt_oss", 2), ("cohere2", 4), ("phi3", None), ("", None), (None, None)],
)
def test_patterns_that_are_built_in(architecture: str | None, entry: int | None) -> None:
    found = find_pattern(architecture, 7, NOWHERE)
    assert (found.entry if found else None) == entry


@pytest.mark.parametrize(
    ("stored", "tier"),
    [([True, False, False], "stored"), ("text", "built_in"), (True, "built_in"), (0, "built_in")],
)
def test_what_was_found_earlier_comes_first_if_it_is_an_entry(stored: object, tier: str) -> None:
    found = find_pattern("gemma3", 4, NOWHERE, PatternSources(stored={"gemma3": stored}))
    assert found is not None
    assert (found.tier, found.worth_storing) == (tier, False)


def test_later_sources_are_asked_in_order_and_only_when_needed() -> None:
    asked: list[str] = []

    def introspect(architecture: str) -> object:
        asked.append(architecture)
        return None

    def config(repo: str) -> dict[str, Any] | None:
        asked.append(repo)
        return {"sliding_window_pattern": 5} if repo == "x/y" else None

    origin = OriginHints(hf_repository="a/b", organization="x", basename="y")
    found = find_pattern("new-arch", 8, origin, PatternSources(introspect=introspect, config=config))
    assert asked == ["new-arch", "new_arch", "a/b", "x/y"]
    assert found is not None
    assert (found.entry, found.tier, found.worth_storing) == (5, "hub", True)


def test_a_source_that_knows_nothing_leaves_nothing() -> None:
    assert find_pattern("new", 8, NOWHERE, PatternSources(stored={"new": 0})) is None


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
