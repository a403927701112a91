"""What a model brings for drafting (05 §5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from framework.planning.speculation.detect import detect, is_gemma_4, names_head
from framework.values.request import SpecPolicy
from framework.values.speculation import NO_FACTS, SpecFacts
from tests.planning.speculation.inputs import GEMMA, HEAD, HEAD_DRAFTER, LATENT, PLAIN


@pytest.mark.parametrize(
    ("name", "is_family"),
    [
        ("gemma-4-E2B", True),
        ("gemma_4_x", True),
        ("gemma4-12b", True),
        ("org/GEMMA-4-12B-it-GGUF", True),
        ("gemma4", False),
        ("gemma-3n-E4B", False),
        ("gemma-3-4-b", False),
        ("", False),
    ],
)
def test_the_family_with_a_head_of_its_own_is_known_by_name(name: str, is_family: bool) -> None:
    assert is_gemma_4(SpecFacts(model_id=name)) is is_family
    assert is_gemma_4(SpecFacts(file_name=name)) is is_family


@pytest.mark.parametrize(
    ("name", "promises"), [("x-MTP-Q4.gguf", True), ("gemma-4-12b.gguf", True), ("xmtp.gguf", False)]
)
def test_a_name_can_promise_a_head(name: str, promises: bool) -> None:
    assert names_head(SpecFacts(file_name=name)) is promises


@pytest.mark.parametrize(
    ("facts", "capable"),
    [
        pytest.param(HEAD, True, id="embedded-head"),
        pytest.param(replace(PLAIN, drafter=HEAD_DRAFTER, drafter_kind="mtp"), True, id="drafter-for-one"),
        pytest.param(replace(PLAIN, drafter=HEAD_DRAFTER, drafter_kind="plain"), False, id="other-drafter"),
        pytest.param(GEMMA, True, id="family"),
        pytest.param(replace(PLAIN, model_id="x-mtp", header_ok=False), True, id="name-without-a-header"),
        pytest.param(replace(PLAIN, model_id="x-mtp"), False, id="name-over-a-header-without-one"),
        pytest.param(replace(PLAIN, header_ok=False), False, id="no-header-and-no-name"),
        pytest.param(PLAIN, False, id="plain"),
    ],
)
def test_what_can_draft_with_a_head(facts: SpecFacts, capable: bool) -> None:
    assert detect(SpecPolicy(), facts).is_capable is capable


def test_a_name_that_lost_its_head_is_seen() -> None:
    assert detect(SpecPolicy(), replace(PLAIN, model_id="x-mtp")).promises_head
    assert not detect(SpecPolicy(), replace(HEAD, model_id="x-mtp")).promises_head


@pytest.mark.parametrize(
    ("changes", "policy", "is_small"),
    [
        ({"params_b": 2.99}, {}, True),
        ({"params_b": 3.0}, {}, False),
        ({"params_b": None}, {}, False),
        ({"params_b": 2.99, "drafter": HEAD_DRAFTER, "drafter_kind": "mtp"}, {}, False),
        ({"params_b": 8.0}, {"min_head_params_b": 9.0}, True),
    ],
)
def test_the_size_gate_is_strict_and_never_closed_by_an_unknown_size(
    changes: dict[str, Any], policy: dict[str, Any], is_small: bool
) -> None:
    assert detect(SpecPolicy(**policy), replace(HEAD, **changes)).is_too_small is is_small


def test_latent_attention_counts_for_embedded_heads_alone() -> None:
    assert detect(SpecPolicy(), LATENT).is_latent
    assert not detect(SpecPolicy(allow_mla=True), LATENT).is_latent
    with_drafter = replace(LATENT, drafter=HEAD_DRAFTER, drafter_kind="mtp")
    assert not detect(SpecPolicy(), with_drafter).is_latent


def test_a_drafter_is_missing_only_where_the_family_needs_one() -> None:
    assert detect(SpecPolicy(), GEMMA).is_drafter_missing
    assert not detect(SpecPolicy(), replace(GEMMA, nextn_layers=1)).is_drafter_missing
    assert not detect(SpecPolicy(), NO_FACTS).is_drafter_missing
