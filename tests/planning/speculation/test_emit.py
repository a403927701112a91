"""Outcomes as flags of a build (05 §7, §8, vectors of §13.8-13.12 and §13.21)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framework.values.engine import Capabilities
from framework.values.speculation import SpecFacts
from tests.planning.speculation.inputs import (
    BARE,
    DEPTH_2,
    DRAFTER,
    HEAD,
    HEAD_DRAFTER,
    KNOBS,
    LEGACY,
    LEGACY_KNOBS,
    NEW,
    PLAIN,
    UNKNOWN,
    decided,
    told,
)

WITH_HEAD_DRAFTER = replace(PLAIN, drafter=HEAD_DRAFTER, drafter_kind="mtp")
WITH_DRAFTER = replace(PLAIN, drafter=DRAFTER, drafter_kind="plain")
MODEL_DRAFT = ("--model-draft", str(DRAFTER))


# Heads


@pytest.mark.parametrize(
    ("facts", "accelerated", "caps", "block"),
    [
        pytest.param(HEAD, True, NEW, ("--spec-type", "draft-mtp", *DEPTH_2), id="alone"),
        pytest.param(
            HEAD,
            False,
            NEW,
            ("--spec-type", "ngram-mod,draft-mtp", "--spec-draft-n-max", "3", *KNOBS),
            id="chained-on-a-cpu",
        ),
        pytest.param(
            WITH_HEAD_DRAFTER,
            True,
            NEW,
            ("--model-draft", str(HEAD_DRAFTER), "--spec-type", "draft-mtp", *DEPTH_2),
            id="drafter-for-a-head",
        ),
        pytest.param(
            HEAD, True, replace(NEW, mtp_token="mtp"), ("--spec-type", "mtp", *DEPTH_2), id="older-word"
        ),
        pytest.param(
            HEAD,
            True,
            replace(UNKNOWN, mtp_token="draft-mtp"),
            ("--spec-type", "draft-mtp", *DEPTH_2),
            id="listed-by-a-build-that-failed",
        ),
        pytest.param(
            HEAD, True, replace(NEW, depth_flag=None), ("--spec-type", "draft-mtp"), id="no-depth-flag"
        ),
    ],
)
def test_a_head_in_the_flags_of_the_build(
    facts: SpecFacts, accelerated: bool, caps: Capabilities, block: tuple[str, ...]
) -> None:
    decision = decided("auto", facts, caps, accelerated=accelerated)
    assert decision.block == block
    assert decision.resolved == "draft-mtp"
    assert decision.is_chained is ("ngram-mod" in "".join(block))


def test_one_flag_is_not_given_two_lengths() -> None:
    decision = decided("mtp+ngram", HEAD, LEGACY, accelerated=False)
    assert decision.block == ("--spec-type", "draft-mtp", "--draft-max", "3")
    assert told(decision) == (None, ["ngram_shared_flag"])
    assert not decision.is_chained


def test_legacy_n_grams_go_before_a_head_whose_depth_has_a_flag_of_its_own() -> None:
    caps = replace(LEGACY, depth_flag="--spec-draft-n-max")
    block = decided("mtp+ngram", HEAD, caps).block
    assert block == ("--spec-type", "ngram-mod,draft-mtp", *DEPTH_2, *LEGACY_KNOBS)


def test_a_missing_depth_flag_is_said_and_leaves_the_depth_to_the_engine() -> None:
    decision = decided("mtp", HEAD, replace(NEW, depth_flag=None), depth=5)
    assert told(decision) == (None, ["depth_flag_missing"])
    assert (decision.depth, decision.depth_source) == (None, None)


@pytest.mark.parametrize(
    ("asked", "accelerated", "depth", "source"),
    [(5, True, 5, "policy"), (None, True, 2, "default"), (None, False, 3, "default")],
)
def test_the_depth_of_a_head(asked: int | None, accelerated: bool, depth: int, source: str) -> None:
    decision = decided("mtp", HEAD, accelerated=accelerated, depth=asked)
    assert (decision.depth, decision.depth_source) == (depth, source)  # 05 §13.12


# N-grams


@pytest.mark.parametrize(
    ("caps", "knobs"), [(NEW, KNOBS), (LEGACY, LEGACY_KNOBS), (UNKNOWN, ())], ids=["new", "legacy", "unknown"]
)
def test_n_grams_in_the_flags_of_the_build(caps: Capabilities, knobs: tuple[str, ...]) -> None:
    assert decided("ngram", caps=caps).block == ("--spec-type", "ngram-mod", *knobs)  # 05 §13.8


def test_the_length_of_n_grams_and_the_depth_of_drafts_are_two_things() -> None:
    """SP-12."""
    block = decided("ngram", depth=7, ngram_max=65).block
    assert block[-2:] == ("--spec-ngram-mod-n-max", "65")
    assert "7" not in block
    block = decided("draft", WITH_DRAFTER, depth=16, ngram_max=65).block
    assert block[-2:] == ("--spec-draft-n-max", "16")
    assert "65" not in block


def test_knobs_of_the_policy_reach_the_line() -> None:
    block = decided("ngram", ngram_match=8, ngram_min=9, ngram_max=10).block
    assert block[3::2] == ("8", "9", "10")


# Drafters


@pytest.mark.parametrize(
    ("mode", "caps", "word", "resolved"),
    [
        ("draft", NEW, "draft-simple", "draft-simple"),
        ("eagle3", NEW, "draft-eagle3", "draft-eagle3"),
        ("dflash", NEW, "draft-dflash", "draft-dflash"),
        ("draft", LEGACY, "draft", "draft-simple"),
        ("eagle3", LEGACY, "eagle3", "draft-eagle3"),
        ("dflash", UNKNOWN, "draft-dflash", "draft-dflash"),
    ],
)
def test_a_drafter_is_never_given_without_its_type(
    mode: str, caps: Capabilities, word: str, resolved: str
) -> None:
    """SP-01."""
    decision = decided(mode, WITH_DRAFTER, caps)
    assert decision.block == (*MODEL_DRAFT, "--spec-type", word)
    assert (decision.resolved, decision.drafter, decision.depth) == (resolved, str(DRAFTER), None)


def test_the_depth_of_a_drafter_is_the_engines_own_unless_the_policy_names_one() -> None:
    decision = decided("draft", WITH_DRAFTER, depth=4)  # 05 §13.21
    assert decision.block == (*MODEL_DRAFT, "--spec-type", "draft-simple", "--spec-draft-n-max", "4")
    assert (decision.depth, decision.depth_source) == (4, "policy")


def test_the_newer_spelling_of_the_drafter_flag_is_used_where_it_is_the_only_one() -> None:
    caps = replace(NEW, drafter_flag="--spec-draft-model")
    assert decided("draft", WITH_DRAFTER, caps).block[0] == "--spec-draft-model"


@pytest.mark.parametrize("mode", ["draft", "eagle3", "dflash"])
def test_a_build_without_the_type_of_a_drafter_gets_none_at_all(mode: str) -> None:
    decision = decided(mode, WITH_DRAFTER, BARE)
    assert (decision.block, decision.resolved, decision.drafter) == ((), "none", None)
    assert told(decision) == ("binary_no_draft_type", [])


# The default of the engine


@pytest.mark.parametrize(
    ("caps", "block"), [(NEW, ("--spec-default",)), (UNKNOWN, ("--spec-default",)), (BARE, ())]
)
def test_the_default_is_asked_for_unless_the_build_is_known_to_lack_it(
    caps: Capabilities, block: tuple[str, ...]
) -> None:
    assert decided("auto", PLAIN, caps).block == block
