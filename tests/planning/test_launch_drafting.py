"""Launches that draft: what they take, what they are told, and when drafting gives way (05 §10)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.planning.launch import plan_launch
from framework.planning.launch_place import shown_launch
from framework.planning.launch_site import Launch, Site
from framework.planning.line_settings import line_of
from framework.values.plan import LaunchPlan, Withheld
from framework.values.reason import Reason
from framework.values.request import SpecPolicy
from framework.values.speculation import NO_FACTS, SpecFacts
from tests.engines.requests import real_caps
from tests.support.launches import (
    DENSE,
    EXPERTS,
    a_card,
    a_launch,
    a_pool,
    codes,
    host,
    placed,
    refused,
    section,
    within_budgets,
)

HYBRID, SMALL = "qwen3.5-27b-33-layers", "qwen3-0.6b"
LAYERS = 34
HEAD = SpecFacts("org/Hybrid-27B", "hybrid.gguf", nextn_layers=1, params_b=27.0)
DRAFTED = SpecFacts("org/Dense-8B", "dense.gguf", drafter=Path("/m/d.gguf"), drafter_kind="plain")
ROOMY, TIGHT = a_card(0, 23.5), a_card(0, 8.2)
DRAFTING = ("--spec-type", "--spec-default", "--model-draft")


def with_head(mode: str, **request: Any) -> Launch:
    return a_launch(HYBRID, about=HEAD, spec=SpecPolicy(mode), **{"n_ctx": 4096, "slots": 4} | request)


def with_drafter(mode: str = "draft", **request: Any) -> Launch:
    return a_launch(
        DENSE, about=DRAFTED, drafter=SMALL, spec=SpecPolicy(mode), **{"n_ctx": 8192, "slots": 2} | request
    )


def rows(plan: LaunchPlan) -> set[tuple[str, str]]:
    """Device and kind of what is taken for drafting."""
    return {(line.device, line.label) for line in plan.fit.lines if line.label.startswith("drafter")}


def drafts(plan: LaunchPlan) -> bool:
    return not set(DRAFTING).isdisjoint(plan.argv)


# What a drafter takes


def test_a_head_has_a_cache_and_a_buffer_and_no_weights_of_its_own() -> None:
    assert rows(placed(with_head("auto"), ROOMY)) >= {("CUDA0", "drafter_kv"), ("CUDA0", "drafter_compute")}
    assert "drafter_weights" not in {label for _, label in rows(placed(with_head("auto"), ROOMY))}


def test_a_drafter_has_weights_cache_and_buffer() -> None:
    labels = {label for device, label in rows(placed(with_drafter(), ROOMY)) if device == "CUDA0"}
    assert labels == {"drafter_weights", "drafter_kv", "drafter_compute"}


@pytest.mark.parametrize("mode", ["auto", "mtp"])
def test_without_a_head_nothing_is_kept_for_one(mode: str) -> None:
    """SP-03: the numbers are those of a launch that does not draft, but for the room of n-gram drafts."""
    asked = placed(a_launch(about=NO_FACTS, n_ctx=8192, spec=SpecPolicy(mode)), ROOMY)
    off = placed(a_launch(about=NO_FACTS, n_ctx=8192, spec=SpecPolicy("off")), ROOMY)
    assert rows(asked) == set()

    def stored(plan: LaunchPlan) -> dict[tuple[str, str], int]:
        return {(one.device, one.label): one.bytes for one in plan.fit.lines if one.label != "compute"}

    assert stored(asked) == stored(off)


def test_a_drafter_that_says_too_little_is_not_planned_but_started() -> None:
    launch = with_drafter()
    unread = replace(launch, model=replace(launch.model, drafter=None, drafter_bytes=600 << 20))
    plan = placed(unread, ROOMY)
    assert codes(plan) == ["planning_fault"]
    assert section(plan, "spec").startswith("--model-draft /m/d.gguf --spec-type draft-simple")
    without = placed(replace(unread, model=replace(unread.model, drafter_bytes=0)), ROOMY)
    assert plan.placement.needs_bytes["CUDA0"] - without.placement.needs_bytes["CUDA0"] >= 600 << 20


def test_a_projector_and_a_head_run_together() -> None:
    """SP-06."""
    launch = with_head("auto")
    facts = replace(launch.facts, projector=Path("/m/mmproj.gguf"))
    seeing = replace(launch, facts=facts, model=replace(launch.model, projector_bytes=900 << 20))
    plan = placed(seeing, ROOMY)
    assert section(plan, "spec") == "--spec-type draft-mtp --spec-draft-n-max 2"
    assert {"projector", "drafter_kv"} <= {line.label for line in plan.fit.lines}


def test_the_depth_that_nobody_names_is_that_of_the_build() -> None:
    """05 §7.9."""
    old = replace(real_caps(), depth_flag="--draft-max")
    depths = [line_of(with_drafter(caps=caps).plan).cache.drafted for caps in (old, real_caps())]
    assert depths == [16, 3]


# Where a drafter goes


@pytest.mark.parametrize(
    ("devices", "told"),
    [
        pytest.param((a_card(0, 10.0), a_card(1, 23.5)), "CUDA0", id="the-card-of-its-model"),
        pytest.param(
            (a_card(0, 6.0, total_gib=8.0), a_card(1, 6.0, total_gib=8.0)), "CUDA0,CUDA1", id="both-cards"
        ),
    ],
)
def test_a_drafter_is_sent_where_its_model_is(devices: tuple[Any, ...], told: str) -> None:
    """Left to itself it goes to every card that the engine sees."""
    plan = placed(with_drafter(), *devices)
    assert f"--spec-draft-device {told}" in section(plan, "spec")
    assert {device for device, _ in rows(plan)} - {"CPU"} == set(plan.placement.devices)
    assert within_budgets(plan.fit)


def test_a_drafter_of_a_model_in_host_memory_stays_there() -> None:
    plan = placed(with_drafter(pool=a_pool("cpu")))
    assert section(plan, "spec").endswith("--spec-draft-device none")
    assert {device for device, _ in rows(plan)} == {"CPU"}


def test_without_cards_there_is_nowhere_to_be_sent() -> None:
    plan = placed(with_drafter())
    assert "--spec-draft-device" not in plan.argv
    assert section(plan, "spec") == "--model-draft /m/d.gguf --spec-type draft-simple"


def test_a_drafter_that_its_user_sends_somewhere_is_not_sent_again() -> None:
    plan = placed(with_drafter(extra_args=("-devd", "none")), ROOMY)
    assert "--spec-draft-device" not in plan.argv
    assert {device for device, _ in rows(plan)} == {"CPU"}


def test_a_drafter_without_layers_on_a_card_does_not_compute_there_either() -> None:
    plan = placed(with_drafter(extra_args=("-ngld", "0")), ROOMY)
    assert section(plan, "spec").endswith("--spec-draft-device none")


def test_a_drafter_of_the_user_is_planned_and_sent_as_well() -> None:
    own = ("--spec-type", "draft-simple", "-md", "/m/d.gguf")
    plan = placed(a_launch(n_ctx=8192, extra_args=own, drafter=SMALL), ROOMY)
    assert (plan.spec.resolved, section(plan, "spec")) == ("user", "--spec-draft-device CUDA0")
    assert ("CUDA0", "drafter_weights") in rows(plan)


# Drafting that takes the memory of layers (SP-04)


def numbers(reason: Reason) -> tuple[int | None, int | None, int]:
    """Layers on GPUs with drafting and without, and all there are."""
    with_it, without = reason.evidence["with"], reason.evidence["without"]
    return with_it and with_it["gpu_layers"], without and without["gpu_layers"], reason.evidence["layers"]


def test_auto_gives_drafting_up_for_layers() -> None:
    plan = placed(with_head("auto"), TIGHT)
    off = placed(with_head("off"), TIGHT)
    assert (plan.spec.requested, plan.spec.resolved, drafts(plan)) == ("auto", "none", False)
    assert plan.spec.reason is not None
    assert plan.spec.reason.code == "draft_displaces_layers"
    drafting, plain, layers = numbers(plan.spec.reason)
    assert drafting is not None
    assert plain is not None
    assert drafting < plain < layers == LAYERS
    assert str(drafting) in plan.spec.reason.message
    assert str(plain) in plan.spec.reason.message
    assert plan.fit == off.fit
    assert (plan.placement, section(plan, "placement")) == (off.placement, section(off, "placement"))


def test_a_forced_mode_drafts_and_is_told_the_same_numbers() -> None:
    plan, gave_up = placed(with_head("mtp"), TIGHT), placed(with_head("auto"), TIGHT)
    assert (plan.spec.resolved, plan.spec.reason, drafts(plan)) == ("draft-mtp", None, True)
    (note,) = plan.spec.notes
    assert (note.code, note.severity) == ("draft_displaces_layers", "warning")
    assert gave_up.spec.reason is not None
    assert numbers(note) == numbers(gave_up.spec.reason)
    assert plan.placement.gpu_layers == numbers(note)[0]


def test_drafting_that_has_room_stays() -> None:
    plan = placed(with_head("auto"), ROOMY)
    assert (plan.spec.resolved, plan.spec.reason, plan.spec.notes) == ("draft-mtp", None, ())


def test_it_is_the_same_launch_whether_there_is_room_or_not() -> None:
    roomy, tight = placed(with_head("auto"), ROOMY), placed(with_head("auto"), TIGHT)
    assert roomy.argv != tight.argv
    assert roomy.fingerprint == tight.fingerprint
    assert roomy.spec_inputs == tight.spec_inputs


def test_a_drafter_gives_way_to_layers_as_well() -> None:
    plan = placed(with_drafter("auto"), a_card(0, 6.4))
    assert plan.spec.reason is not None
    assert plan.spec.reason.code == "draft_displaces_layers"
    assert (rows(plan), drafts(plan)) == (set(), False)


def test_experts_count_as_well_as_layers() -> None:
    asked = {"about": DRAFTED, "drafter": SMALL, "n_ctx": 8192}
    plan = placed(a_launch(EXPERTS, spec=SpecPolicy("auto"), **asked), a_card(0, 12.0))
    reason = plan.spec.reason
    assert reason is not None
    assert reason.evidence["with"]["cpu_experts"] > reason.evidence["without"]["cpu_experts"] > 0
    assert plan.placement.cpu_experts == reason.evidence["without"]["cpu_experts"]
    assert f"{plan.placement.cpu_experts} of them without their experts" in reason.message


def test_what_could_make_room_by_unloading_others_is_tried_first() -> None:
    """Only where nothing else is left do layers go to host memory, or drafting."""
    assert refused(with_head("auto"), TIGHT, freedom="whole").code == "does_not_fit"


def test_drafting_gives_way_where_layers_must_not() -> None:
    pool = a_pool(offload="forbid")
    card = a_card(0, 9.9)
    plan = placed(with_head("auto", pool=pool, extra_args=("-np", "4")), card)
    assert plan.spec.reason is not None
    assert numbers(plan.spec.reason)[:2] == (None, LAYERS)
    forced = with_head("mtp", pool=pool, extra_args=("-np", "4"))
    assert refused(forced, card).code == "does_not_fit"
    shown = shown_launch(forced, Site((card, host())))
    assert codes(shown) == ["does_not_fit"]
    assert [note.code for note in shown.spec.notes] == ["draft_displaces_layers"]


# What is withheld


def withheld(launch: Launch, reason: Reason) -> Launch:
    """The launch as it is planned while drafting is withheld."""
    facts = replace(launch.facts, withheld=Withheld(drafting=reason))
    return replace(launch, facts=facts, plan=plan_launch(launch.plan.request, 0, facts))


CRASHED = Reason("runtime_error", "It crashed twice while drafting.", "Reload it.", "warning")


def test_withheld_drafting_is_neither_on_the_line_nor_in_memory() -> None:
    plan = placed(withheld(with_drafter(), CRASHED), ROOMY)
    assert (plan.spec.reason, drafts(plan), rows(plan)) == (CRASHED, False, set())


def test_types_of_the_user_are_left_out_while_drafting_is_withheld() -> None:
    """Nothing that stands later on the line could switch them off (15 §3)."""
    own = ("--spec-type", "draft-simple", "-md", "/m/d.gguf", "--threads", "2")
    plan = placed(withheld(a_launch(n_ctx=8192, extra_args=own, drafter=SMALL), CRASHED), ROOMY)
    assert section(plan, "user") == "--threads 2"
    assert (plan.spec.requested, plan.spec.resolved, plan.spec.reason) == (None, "user", CRASHED)
    assert (rows(plan), plan.request.extra_args) == (set(), own)


def test_what_was_decided_on_is_kept_without_what_is_withheld() -> None:
    """The comparison with a new manifest is about the wish (07 §3.6)."""
    plan = placed(withheld(with_head("mtp"), CRASHED), ROOMY)
    assert plan.spec_inputs is not None
    assert (plan.spec_inputs.withheld, plan.spec_inputs.facts) == (None, HEAD)
