"""Whether a process holds more than its plan, and what is said then."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.planning.memory_drift import memory_over_plan, over_plan, planned_bytes
from framework.values.device import Device
from framework.values.engine import EngineBinary, FileId
from framework.values.plan import FitPlan, Placement
from tests.support.launch_plans import a_plan

MIB, GIB = 1 << 20, 1 << 30
BINARY = EngineBinary(Path("/e"), Path("/"), FileId(Path("/e"), 1, 1), "manifest")
PLACEMENT = Placement(
    devices=("CUDA0",), needs_bytes={"CUDA0": 20 * GIB, "CPU": GIB}, grows_bytes={"CPU": 8 * GIB}
)
FITS = FitPlan(fits=True)
CARD = Device("CUDA0", "gpu", 24 * GIB, GIB, uuid="GPU-1")


@pytest.mark.parametrize(
    ("held", "planned", "over"),
    [
        (1000 * MIB, 1000 * MIB, 0),
        (1256 * MIB, 1000 * MIB, 0),
        (1257 * MIB, 1000 * MIB, 257 * MIB),
        (100 * MIB, 1000 * MIB, 0),
        (int(20.9 * GIB), 20 * GIB, 0),
        (22 * GIB, 20 * GIB, 2 * GIB),
    ],
    ids=["as-planned", "256-mib-more", "257-mib-more", "less", "4-percent", "10-percent"],
)
def test_what_counts_as_more(held: int, planned: int, over: int) -> None:
    assert over_plan({"CUDA0": held}, {"CUDA0": planned}) == ({"CUDA0": over} if over else {})


def test_a_device_that_was_not_planned_is_not_judged() -> None:
    assert over_plan({"CUDA1": GIB}, {"CUDA0": GIB}) == {}


def test_what_grows_while_it_serves_is_planned() -> None:
    plan = a_plan(BINARY, placement=PLACEMENT, fit=FITS)
    assert planned_bytes(plan, [CARD]) == {"CUDA0": 20 * GIB, "CPU": 9 * GIB}


def test_what_the_engine_decided_itself_is_not_judged() -> None:
    assert planned_bytes(a_plan(BINARY, placement=PLACEMENT), [CARD]) == {}
    on_card = Placement(devices=("CUDA0",), needs_bytes={"CUDA0": GIB})
    assert planned_bytes(a_plan(BINARY, placement=on_card, fit=FITS), [CARD]) == {"CUDA0": GIB}


@pytest.mark.parametrize(
    "card", [Device("CUDA0", "gpu", 1, 1), Device("CUDA0", "gpu", 1, 1, uuid="GPU-1", is_unified=True)]
)
def test_memory_of_a_gpu_that_may_be_the_hosts_counts_there_too(card: Device) -> None:
    assert planned_bytes(a_plan(BINARY, placement=PLACEMENT, fit=FITS), [card])["CPU"] == 29 * GIB


def test_the_reason_names_both_numbers_and_what_to_do() -> None:
    reason = memory_over_plan("chat", {"CPU": 3 * GIB}, {"CPU": GIB}, {"CPU": 2 * GIB})
    assert reason.code == "memory_over_plan"
    assert "3 GiB of CPU where 1 GiB were planned" in reason.message
    assert "paddock plan chat --measure" in reason.remedy
    assert reason.evidence["over_bytes"] == {"CPU": 2 * GIB}
