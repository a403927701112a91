"""What a model goes without for a while, because its processes did worse with it (05 §11)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from framework.runtime.demotion import Demotion
from framework.runtime.instance import Instance
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog
from framework.values.engine import EngineBinary, FileId
from framework.values.instance import ExitInfo
from framework.values.plan import LaunchResult, Section, SpecDecision, Withheld
from framework.values.reason import Reason
from framework.values.request import ModelSource, SpecPolicy
from tests.support.launch_plans import a_plan

ENTRY = Path("/opt/llama/llama-server")
ENGINE = EngineBinary(ENTRY, ENTRY.parent, FileId(ENTRY, 1, 1), "manifest")
SLOW = Reason("speculation_unprofitable", "It is slower.", "Nothing.", "warning")
DAY_S = 24 * 3600.0


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def an_instance(
    speculation: str = "draft-mtp", *, drafter: Path | None = None, divided: bool = False
) -> Instance:
    """An instance whose process ended by itself while it was ready."""
    spec = SpecDecision("mtp", "draft-mtp", drafter=str(drafter) if drafter else None)
    sections = [Section("placement", ("--split-mode", "tensor"))] if divided else []
    made = a_plan(ENGINE, *sections, spec=spec)
    instance = Instance(made.request, 0, 1, events=EventLog(Changes()), restarts=0, on_idle=lambda _: None)
    instance.plan = made
    instance.result = LaunchResult("ready", speculation=speculation)
    instance.last_exit = ExitInfo(-11, hard=True, planned=False, seconds_ready=5.0)
    return instance


def test_one_crash_while_drafting_may_have_any_cause() -> None:
    demotion, instance = Demotion(), an_instance()
    assert demotion.crashed(instance, hard=True) is None
    assert demotion.withheld(instance.request) == Withheld()


def test_a_second_hard_crash_inside_the_window_withholds_drafting() -> None:
    demotion, instance = Demotion(Clock()), an_instance()
    demotion.crashed(instance, hard=True)
    reason = demotion.crashed(instance, hard=True)
    assert reason is not None
    assert reason.code == "runtime_error"
    assert "signal 11 (SIGSEGV) while it drafted (draft-mtp), 2 times" in reason.message
    assert demotion.withheld(instance.request) == Withheld(reason, None, ENGINE.file)


def test_crashes_further_apart_than_the_window_are_no_loop() -> None:
    clock = Clock()
    demotion, instance = Demotion(clock), an_instance()
    demotion.crashed(instance, hard=True)
    clock.now_s += instance.request.live.restart.window_s + 1
    assert demotion.crashed(instance, hard=True) is None


def test_what_ends_softly_says_nothing_of_drafting() -> None:
    demotion, instance = Demotion(), an_instance()
    assert [demotion.crashed(instance, hard=False) for _ in range(3)] == [None, None, None]


@pytest.mark.parametrize("running", ["none", "ngram-mod", "default"])
def test_crashes_without_a_drafter_withhold_nothing(running: str) -> None:
    demotion, instance = Demotion(), an_instance(running)
    assert [demotion.crashed(instance, hard=True) for _ in range(3)] == [None, None, None]


def test_a_head_over_divided_tensors_is_armed_so_one_end_is_enough() -> None:
    demotion, instance = Demotion(), an_instance(divided=True)
    reason = demotion.crashed(instance, hard=False)
    assert reason is not None
    assert demotion.withheld(instance.request).drafting == reason


def test_a_demoted_instance_is_not_armed() -> None:
    demotion = Demotion()
    assert demotion.crashed(an_instance("none", divided=True), hard=True) is None


def test_another_policy_gets_drafting_again() -> None:
    demotion, instance = Demotion(), an_instance()
    demotion.does_not_pay(instance, SLOW, for_s=DAY_S)
    edited = replace(instance.request, spec=SpecPolicy("mtp", depth=1))
    assert demotion.withheld(edited) == Withheld()
    assert demotion.withheld(instance.request) == Withheld(), "a changed field clears the mark for good"


def test_another_program_gets_everything_again() -> None:
    held = Withheld(SLOW, None, ENGINE.file)
    assert held.for_engine(ENGINE.file) == held
    assert held.for_engine(FileId(ENTRY, 1, 2)) == Withheld()


def test_another_drafter_is_worth_a_try(tmp_path: Path) -> None:
    drafter = tmp_path / "d.gguf"
    drafter.write_bytes(b"GGUF")
    demotion, instance = Demotion(), an_instance(drafter=drafter)
    demotion.does_not_pay(instance, SLOW, for_s=DAY_S)
    assert demotion.withheld(instance.request).drafting == SLOW
    os.utime(drafter, ns=(1, 1))
    assert demotion.withheld(instance.request).drafting is None


def test_what_did_not_pay_is_tried_again_after_a_day() -> None:
    clock = Clock()
    demotion, instance = Demotion(clock), an_instance()
    demotion.does_not_pay(instance, SLOW, for_s=DAY_S)
    clock.now_s += DAY_S - 1
    assert demotion.withheld(instance.request).drafting == SLOW
    clock.now_s += 1
    assert demotion.withheld(instance.request).drafting is None


def test_a_reload_gives_everything_back() -> None:
    demotion, instance = Demotion(), an_instance()
    demotion.does_not_pay(instance, SLOW, for_s=DAY_S)
    demotion.forget()
    assert demotion.withheld(instance.request) == Withheld()


def test_a_start_that_could_not_divide_tensors_is_remembered() -> None:
    abort = Reason("tensor_abort", "It aborted.", "Nothing.", "warning")
    demotion, instance = Demotion(), an_instance()
    instance.withheld = Withheld(tensor=abort)
    demotion.learn(instance)
    assert demotion.withheld(instance.request) == Withheld(None, abort, ENGINE.file)


def test_what_crashed_stays_withheld_when_its_yield_does_not_matter() -> None:
    demotion, instance = Demotion(), an_instance()
    demotion.crashed(instance, hard=True)
    demotion.crashed(instance, hard=True)
    demotion.keep_drafting()
    assert demotion.withheld(instance.request).drafting is not None


def test_what_does_not_pay_is_drafted_again_when_its_yield_does_not_matter() -> None:
    demotion, instance = Demotion(), an_instance()
    demotion.does_not_pay(instance, SLOW, for_s=DAY_S)
    demotion.keep_drafting()
    assert demotion.withheld(instance.request) == Withheld()


def test_another_model_file_is_worth_a_try(tmp_path: Path) -> None:
    demotion, instance = Demotion(), an_instance()
    demotion.does_not_pay(instance, SLOW, for_s=DAY_S)
    moved = replace(instance.request, source=ModelSource(path=tmp_path / "other.gguf"))
    assert demotion.withheld(moved) == Withheld()


def test_what_another_program_could_not_do_is_not_learnt_of_this_one() -> None:
    abort = Reason("tensor_abort", "It aborted.", "Nothing.", "warning")
    demotion, instance = Demotion(), an_instance()
    instance.withheld = Withheld(tensor=abort, engine=FileId(ENTRY, 9, 9)).for_engine(ENGINE.file)
    demotion.learn(instance)
    assert demotion.withheld(instance.request) == Withheld()
