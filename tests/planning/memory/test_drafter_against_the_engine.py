"""A drafter's part of a plan against the buffers that the engine says it allocates for it."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from framework.engines.process_output import Watcher, watch
from framework.models.facts import FactsReader
from framework.planning.launch_memory import ModelMemory, extras_of
from framework.planning.line_settings import read_line
from framework.planning.memory.drafter import Drafter
from framework.planning.memory.fit import plan_memory
from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import GpuBudget, Hardware
from framework.planning.memory.shape import shape_of
from framework.planning.memory.tensor_table import table_of

pytestmark = pytest.mark.engine

MIB = 1 << 20
START_S = 100.0
SECOND_CONTEXT, ALLOCATED = b"loading draft model", b"reserve took"
BUFFER = re.compile(r"(\S+) +(model|KV|output|compute) buffer size *= *([\d.]+) MiB")
LABELS = {"model": "drafter_weights", "KV": "drafter_kv", "compute": "drafter_compute"}
# Compute buffers of software devices are a little smaller than those of cards, for which the rules are.
CLOSE_MIB = {"drafter_weights": 0.02, "drafter_kv": 0.02, "drafter_compute": 1.2}
ALWAYS = "--no-warmup --fit off --flash-attn on -c 4096 --spec-type draft-simple --spec-draft-n-max 4"
# Devices in software are not listed unless they are asked for.
VISIBLE = "GGML_VK_VISIBLE_DEVICES"


class UntilAllocated(Watcher):
    """Keeps what a server printed until it has allocated everything."""

    def __init__(self) -> None:
        super().__init__()
        self.text = b""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.text += data
        if ALLOCATED in self.of_drafter:
            self.done.set()

    @property
    def of_drafter(self) -> bytes:
        """What was printed of the second model and its context."""
        return self.text.partition(SECOND_CONTEXT)[2]


async def allocated(engine: Path, argv: list[str], devices: str) -> Mapping[tuple[str, str], float]:
    """MiB by device and label of all that is allocated for the drafter."""
    seen = UntilAllocated()
    env = {**os.environ, VISIBLE: devices}
    await watch(seen, [str(engine), *argv, "-lv", "4", "--port", "0"], env, timeout_s=START_S, cwd=Path("/"))
    assert ALLOCATED in seen.of_drafter, seen.text[-2000:]
    found: Counter[tuple[str, str]] = Counter()
    for buffer, kind, mib in BUFFER.findall(seen.of_drafter.decode()):
        device = buffer if re.fullmatch(r"Vulkan\d", buffer) else HOST
        if kind in LABELS:
            found[device, LABELS[kind]] += float(mib)
    return found


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        pytest.param("--device none --spec-draft-device none -np 2 --kv-unified", (), id="host"),
        pytest.param("--device none -np 3 --no-kv-unified -ctk q8_0 -ctv q8_0", (), id="f16-beside-q8_0"),
        pytest.param("--device none -np 2 --kv-unified -ctkd q8_0 -ctvd q8_0 -ub 256", (), id="q8_0"),
        pytest.param(
            "--device Vulkan1 --spec-draft-device Vulkan1 -ngl 5 -np 2 --kv-unified",
            ("Vulkan1",),
            id="whole-on-the-device-of-a-part",
        ),
        pytest.param(
            "--device Vulkan0,Vulkan1 -ngl 31 -ts 20,11 -np 2 --kv-unified",
            ("Vulkan0", "Vulkan1"),
            id="divided",
        ),
    ],
)
def test_a_drafter_takes_what_is_planned(
    text: str, gpus: tuple[str, ...], engine_binary: Path, smollm2: Path
) -> None:
    argv = ["-m", str(smollm2), "-md", str(smollm2), *ALWAYS.split(), *text.split()]
    facts = FactsReader().read(smollm2)
    shape, table = shape_of(facts.header), table_of(facts.tensors)
    line = read_line(argv, {})
    hardware = Hardware(tuple(GpuBudget(name, 2 << 30, 2 << 30, "vulkan") for name in gpus), 8 << 30, 8 << 30)
    extras = extras_of(line, ModelMemory(shape, table, drafter=Drafter(shape, table)))
    fit = plan_memory(shape, table, line.cache, hardware, line.offload, extras)
    planned: Counter[tuple[str, str]] = Counter()
    for one in fit.lines:
        planned[one.device, one.label] += one.bytes
    found = asyncio.run(allocated(engine_binary, argv, "0,0" if gpus else ""))
    assert {key for key in planned if key[1] in CLOSE_MIB} == set(found)
    for (device, label), mib in found.items():
        assert planned[device, label] / MIB == pytest.approx(mib, abs=CLOSE_MIB[label]), (device, label)
