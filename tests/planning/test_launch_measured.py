"""A plan with an engine's word on its memory, and when an older word still counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from framework.planning.launch_measured import by_outside_names, still_holds, with_measurement
from framework.values.device import Device
from framework.values.measurement import EngineChoice, MeasuredRow, Measurement
from framework.values.plan import FitPlan, LaunchPlan, MemoryLine, Remedy, Section
from framework.values.reason import Reason
from tests.engines.programs import program
from tests.support.launch_plans import a_plan

MIB = 1 << 20
GPU = "CUDA0"
ASKED = (MeasuredRow(GPU, GPU, 4000, 20_000, 100, 24_000), MeasuredRow("CPU", "Host", 281, 0, 24))
MEASURED = Measurement(ASKED)
MOVED = Measurement(
    ASKED,
    choice=EngineChoice((MeasuredRow(GPU, GPU, 3000, 15_000, 100, 24_000), *ASKED[1:]), gpu_layers=20),
)
SHORTENED = replace(MOVED, choice=replace(MOVED.choice, context=8192, gpu_layers=None))
FIT_ON, FIT_OFF = Section("placement", ("--fit", "on")), Section("placement", ("-ngl", "9", "--fit", "off"))
REMEDY = Remedy("context", 4096, MIB, fits=True, sentence="Shorten it.")


@pytest.fixture
def plan(tmp_path: Path) -> LaunchPlan:
    """Planned with a shorter context and a part in host memory."""
    fit = FitPlan(
        lines=(MemoryLine(GPU, "weights", 3500 * MIB, "computed"),),
        budget_bytes={GPU: 25_000 * MIB, "CPU": 1000 * MIB},
        total_bytes={GPU: 3500 * MIB},
        fits=True,
        context=16_384,
        gpu_layers=25,
        remedies=(REMEDY,),
    )
    said = (Reason("layers_delegated", "."), Reason("context_fitted", "."), Reason("v_cache_f16", "."))
    return a_plan(program(tmp_path), FIT_ON, fit=fit, reasons=said, context=0, context_train=32_768)


def codes(plan: LaunchPlan) -> list[str]:
    return [reason.code for reason in plan.reasons]


def devices(free_mib: int) -> list[Device]:
    return [Device(GPU, "gpu", 24_576 * MIB, free_mib * MIB), Device("CPU", "cpu", 0, 0)]


def test_an_engine_that_keeps_everything_overrules_what_we_feared(plan: LaunchPlan) -> None:
    found = with_measurement(plan, MEASURED)
    assert codes(found) == ["v_cache_f16"]
    assert (found.fit.context, found.fit.gpu_layers, found.fit.remedies) == (32_768, None, ())


def test_layers_that_the_engine_moves_are_told_and_remedies_stay(plan: LaunchPlan) -> None:
    found = with_measurement(plan, MOVED)
    assert codes(found) == ["v_cache_f16", "layers_delegated"]
    assert (found.fit.gpu_layers, found.fit.fits, found.fit.remedies) == (20, True, (REMEDY,))
    assert "20 layers" in found.reasons[-1].message


def test_a_context_that_the_engine_shortens_is_told(plan: LaunchPlan) -> None:
    found = with_measurement(plan, SHORTENED)
    assert (codes(found), found.fit.context) == (["v_cache_f16", "context_fitted"], 8192)


def test_what_does_not_fit_is_told(plan: LaunchPlan) -> None:
    full = replace(plan, fit=replace(plan.fit, budget_bytes={GPU: 10 * MIB}))
    found = with_measurement(full, MEASURED)
    assert (codes(found), found.fit.fits) == (["v_cache_f16", "does_not_fit"], False)


def test_command_line_and_fingerprint_stay(plan: LaunchPlan) -> None:
    found = with_measurement(plan, MOVED)
    assert (found.argv, found.fingerprint) == (plan.argv, plan.fingerprint)


@pytest.mark.parametrize(
    ("measured", "free_mib", "holds"),
    [
        pytest.param(MEASURED, 24_000, True, id="as much is free"),
        pytest.param(MEASURED, 60_000, True, id="more is free"),
        pytest.param(MEASURED, 23_900, True, id="a little less is free"),
        pytest.param(MEASURED, 12_000, False, id="much less is free"),
        pytest.param(replace(MEASURED, asked=(replace(ASKED[0], context_mib=10),)), 12_000, True, id="small"),
        pytest.param(MOVED, 24_100, True, id="as much is free, for less than asked"),
        pytest.param(MOVED, 60_000, False, id="more is free, and more could be had"),
        pytest.param(MOVED, 12_000, False, id="less is free, and more would be moved"),
    ],
)
def test_an_answer_holds_while_the_engine_would_say_the_same(
    plan: LaunchPlan, measured: Measurement, free_mib: int, holds: bool
) -> None:
    assert still_holds(plan, measured, devices(free_mib)) is holds


def test_an_answer_about_a_device_that_is_gone_does_not_hold(plan: LaunchPlan) -> None:
    assert not still_holds(plan, MEASURED, devices(24_000)[1:])


def test_a_launch_that_nothing_changes_holds_whatever_is_free(tmp_path: Path) -> None:
    fixed = a_plan(program(tmp_path), FIT_OFF)
    assert still_holds(fixed, MEASURED, devices(1))


def test_an_engine_that_was_shown_one_card_speaks_of_it_by_another_name(plan: LaunchPlan) -> None:
    found = by_outside_names(MOVED, {"CUDA3": GPU})
    assert [row.device for row in found.asked] == ["CUDA3", "CPU"]
    assert found.choice is not None
    assert {row.device for row in found.choice.table} == {"CUDA3", "CPU"}


def test_the_ledger_gets_what_was_measured(plan: LaunchPlan) -> None:
    found = with_measurement(plan, MEASURED)
    assert found.placement.needs_bytes[GPU] == found.fit.needed_bytes(GPU)


def test_what_was_decided_by_us_stays_said(plan: LaunchPlan) -> None:
    decided = replace(plan, placement=replace(plan.placement, is_delegated=False))
    assert codes(with_measurement(decided, MEASURED)) == ["layers_delegated", "context_fitted", "v_cache_f16"]
