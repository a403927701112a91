"""What only the native engine is told, and what others say of it (05 §14)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from framework.planning.speculation.native import GUARD_FLAGS
from tests.planning.speculation.inputs import HEAD, NEW, PLAIN, decided, told

NATIVE = replace(
    NEW,
    flags=NEW.flags
    | {"--spec-dm-adaptive", "--spec-dm-controller", "--reasoning-loop-guard", *GUARD_FLAGS.values()},
)
GUARD = {"mode": "stop", "window_tokens": 300}


@pytest.mark.parametrize(
    ("policy", "ruled"),
    [
        pytest.param(
            {},
            ("--spec-draft-n-max", "3", "--spec-dm-adaptive", "on", "--spec-dm-controller", "profit"),
            id="by-itself",
        ),
        pytest.param(
            {"is_adaptive": True, "controller": "fringe"},
            ("--spec-draft-n-max", "3", "--spec-dm-adaptive", "on", "--spec-dm-controller", "fringe"),
            id="asked-for",
        ),
        pytest.param({"depth": 5}, ("--spec-draft-n-max", "5", "--spec-dm-adaptive", "off"), id="fixed"),
    ],
)
def test_the_native_engine_adapts_its_depth_unless_a_number_is_asked_for(
    policy: dict[str, Any], ruled: tuple[str, ...]
) -> None:
    decision = decided("mtp", HEAD, NATIVE, is_native=True, **policy)
    assert decision.block == ("--spec-type", "draft-mtp", *ruled)
    assert told(decision) == (None, [])


@pytest.mark.parametrize("controller", ["profit", "fringe"])
def test_drafts_from_the_text_are_ruled_as_well(controller: str) -> None:
    decision = decided("ngram", PLAIN, NATIVE, is_native=True, controller=controller)
    ruled = ("--spec-dm-adaptive", "on", "--spec-dm-controller", controller)
    assert decision.block[:6] == ("--spec-type", "ngram-mod", *ruled)


def test_the_guard_works_without_drafting_as_well() -> None:
    decision = decided("off", PLAIN, NATIVE, is_native=True, loop_guard=GUARD)
    assert decision.block == ("--reasoning-loop-guard", "stop", "--reasoning-loop-window", "300")


def test_a_native_engine_that_lacks_them_gets_none_of_these_flags() -> None:
    decision = decided("mtp", HEAD, NEW, is_native=True, loop_guard=GUARD, is_adaptive=True)
    assert decision.block == ("--spec-type", "draft-mtp", "--spec-draft-n-max", "3")
    note = next(note for note in decision.notes if note.code == "native_only")
    assert note.evidence["settings"] == ['depth = "adaptive"', "loop_guard"]
    assert "this build of the native engine" in note.message


@pytest.mark.parametrize(
    "policy", [{"is_adaptive": True}, {"controller": "fringe"}, {"loop_guard": GUARD}], ids=str
)
def test_other_engines_say_what_they_cannot_follow(policy: dict[str, Any]) -> None:
    decision = decided("mtp", HEAD, NEW, **policy)
    assert decision.block == ("--spec-type", "draft-mtp", "--spec-draft-n-max", "2")
    assert told(decision) == (None, ["native_only"])


def test_a_guard_that_is_off_is_none() -> None:
    assert told(decided("mtp", HEAD, loop_guard={"mode": "off"})) == (None, [])
