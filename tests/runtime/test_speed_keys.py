"""Processes that are the same but for speculation are compared, others are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.runtime.speed_keys import drafting_of, launch_key
from framework.values.engine import EngineBinary, FileId
from framework.values.plan import LaunchPlan, LaunchResult, Section, SpecDecision
from tests.support.launch_plans import a_plan

ENTRY = Path("/opt/llama/llama-server")
ENGINE = EngineBinary(ENTRY, ENTRY.parent, FileId(ENTRY, 1, 1), "manifest")
NEWER = replace(ENGINE, file=FileId(ENTRY, 2, 2))
NGRAM = Section("spec", ("--spec-type", "ngram-mod"), "optional")


def planned(*sections: Section, **fields: Any) -> LaunchPlan:
    return a_plan(ENGINE, *sections, **fields)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(planned(NGRAM), id="it drafts"),
        pytest.param(planned(Section("user", ("--spec-default",), "user")), id="the user has it draft"),
        pytest.param(planned(Section("context", ("-c", "8192"))), id="another context"),
        pytest.param(planned(env={"LLAMA_ARG_SPEC_DRAFT_N_MAX": "3"}), id="a variable of speculation"),
        pytest.param(planned(env={"TERM": "xterm"}), id="another terminal"),
    ],
)
def test_speculation_and_room_make_no_other_launch(other: LaunchPlan) -> None:
    assert launch_key(other) == launch_key(planned())


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(planned(Section("threads", ("--threads", "2"))), id="threads"),
        pytest.param(planned(Section("kv", ("-ctk", "q8_0"))), id="cache type"),
        pytest.param(planned(Section("placement", ("-ngl", "10"))), id="place"),
        pytest.param(planned(env={"GGML_VK_VISIBLE_DEVICES": "0"}), id="a variable of the engine"),
        pytest.param(planned(file_bytes=7), id="another file"),
        pytest.param(a_plan(NEWER), id="another program"),
    ],
)
def test_all_else_makes_another_launch(other: LaunchPlan) -> None:
    assert launch_key(other) != launch_key(planned())


def test_what_drafts_nothing_has_no_means_to() -> None:
    drafting = drafting_of(planned(NGRAM), LaunchResult("ready", speculation="none"), 5.0)
    assert (drafting.running, drafting.means, drafting.ready_at_s) == ("none", "", 5.0)


def test_another_depth_or_drafter_are_other_means() -> None:
    result = LaunchResult("ready", speculation="draft-simple")
    plans = [
        planned(Section("spec", ("--spec-draft-n-max", depth), "optional"), spec=decision)
        for depth in ("2", "3")
        for decision in (SpecDecision("draft", "draft-simple", drafter=name) for name in ("/a", "/b"))
    ]
    assert len({drafting_of(plan, result, 0.0).means for plan in plans}) == len(plans)
