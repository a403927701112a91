"""Copies of what goes between GPUs, as build b10068 was seen to keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.models.facts import FactsReader
from framework.planning.memory.fit import plan_memory
from framework.planning.memory.settings import CacheSettings, GpuBudget, Hardware, Offload
from framework.planning.memory.settings import Hardware as Devices
from framework.planning.memory.shape import shape_of
from framework.planning.memory.tensor_table import table_of

MIB, GIB = 1 << 20, 1 << 30
MODEL = Path(__file__).parents[3] / "models/SmolLM2-135M-Instruct.Q4_1.gguf"


def compute_mib(hardware: Devices, offload: Offload) -> dict[str, float]:
    facts = FactsReader().read(MODEL)
    shape, table = shape_of(facts.header), table_of(facts.tensors)
    plan = plan_memory(shape, table, CacheSettings(8192, slots=4), hardware, offload)
    return {line.device: line.bytes / MIB for line in plan.lines if line.label == "compute"}


def gpus(*backends: str) -> Hardware:
    cards = (GpuBudget(f"G{n}", 2 * GIB, 2 * GIB, kind) for n, kind in enumerate(backends))  # type: ignore[arg-type]
    return Hardware(tuple(cards), 20 * GIB, 24 * GIB)


def test_two_gpus_hold_what_the_engine_logged() -> None:
    found = compute_mib(gpus("vulkan", "vulkan"), Offload(None, 0, (4.0, 27.0)))
    assert found == pytest.approx({"G0": 47.79, "G1": 47.79, "CPU": 34.30}, abs=0.1)


@pytest.mark.parametrize(
    ("hardware", "offload"),
    [
        pytest.param(gpus("vulkan"), Offload(), id="one-gpu"),
        pytest.param(gpus("rpc", "rpc"), Offload(), id="remote-ones-cannot-wait"),
        pytest.param(gpus("vulkan", "vulkan"), Offload(20), id="layers-in-host-memory"),
    ],
)
def test_otherwise_there_is_one_copy(hardware: Hardware, offload: Offload) -> None:
    assert compute_mib(hardware, offload)["CPU"] < 30
