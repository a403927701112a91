"""Policies and what they come to (05 §6, §7)."""

from __future__ import annotations

import pytest

from framework.planning.speculation.decide import decide_speculation
from framework.planning.speculation.facts import NO_FACTS, SpecInputs
from framework.values.engine import Capabilities
from framework.values.request import SpecPolicy

NEW = Capabilities(
    conclusive=True,
    flags=frozenset({"--spec-type", "--spec-default"}),
    spec_types=("none", "ngram-simple", "ngram-mod"),
    ngram_flavour="new",
)
LEGACY = Capabilities(
    conclusive=True,
    flags=frozenset({"--spec-type"}),
    spec_types=("none", "ngram-mod"),
    ngram_flavour="legacy",
)
BARE = Capabilities(conclusive=True)
UNKNOWN = Capabilities()


@pytest.mark.parametrize(
    ("mode", "caps", "block"),
    [
        pytest.param("off", NEW, (), id="off"),
        pytest.param("ngram-simple", NEW, ("--spec-type", "ngram-simple"), id="ngram-simple"),
        pytest.param("ngram-simple", LEGACY, (), id="ngram-simple-not-listed"),
        pytest.param(
            "ngram",
            NEW,
            (
                *("--spec-type", "ngram-mod", "--spec-ngram-mod-n-match", "24"),
                *("--spec-ngram-mod-n-min", "48", "--spec-ngram-mod-n-max", "64"),
            ),
            id="ngram-new-flags",
        ),
        pytest.param(
            "ngram",
            LEGACY,
            (
                "--spec-type",
                "ngram-mod",
                "--spec-ngram-size-n",
                "24",
                "--draft-min",
                "48",
                "--draft-max",
                "64",
            ),
            id="ngram-legacy-flags",
        ),
        pytest.param("ngram", UNKNOWN, ("--spec-type", "ngram-mod"), id="ngram-inconclusive-probe"),
        pytest.param("ngram", BARE, (), id="ngram-unsupported"),
        pytest.param("auto", NEW, ("--spec-default",), id="auto"),
        pytest.param("auto", UNKNOWN, ("--spec-default",), id="auto-inconclusive-probe"),
        pytest.param("auto", BARE, (), id="auto-without-the-flag"),
    ],
)
def test_a_policy_becomes_the_flags_of_the_build(
    mode: str, caps: Capabilities, block: tuple[str, ...]
) -> None:
    assert decide_speculation(SpecInputs(SpecPolicy(mode=mode), NO_FACTS, caps)).block == block


def test_flags_of_the_user_leave_no_room_for_the_policy() -> None:
    decision = decide_speculation(SpecInputs(SpecPolicy(mode="ngram"), NO_FACTS, NEW, ("--spec-type", "x")))
    assert (decision.block, decision.resolved) == ((), "user")


def test_knobs_of_the_policy_reach_the_line() -> None:
    policy = SpecPolicy(mode="ngram", ngram_match=8, ngram_min=9, ngram_max=10)
    block = decide_speculation(SpecInputs(policy, NO_FACTS, NEW)).block
    assert [block[3], block[5], block[7]] == ["8", "9", "10"]


@pytest.mark.parametrize("mode", ["ngram", "ngram-simple", "auto"])
def test_what_a_build_cannot_do_is_said_with_a_remedy(mode: str) -> None:
    decision = decide_speculation(SpecInputs(SpecPolicy(mode=mode), NO_FACTS, BARE))
    assert decision.resolved == "none"
    assert all(note.remedy for note in decision.notes)
    assert decision.notes
