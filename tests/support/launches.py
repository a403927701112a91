"""Launches of measured models without files, engines or devices behind them, for tests of where they go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from framework.engines.library_path import LibraryPath
from framework.models.file_set import FileSet
from framework.planning.launch import LaunchFacts, plan_launch
from framework.planning.launch_memory import ModelMemory
from framework.planning.launch_place import place_launch
from framework.planning.launch_site import Launch, Site
from framework.planning.memory.drafter import Drafter
from framework.values.device import Device
from framework.values.engine import Capabilities, EngineBinary, FileId
from framework.values.plan import FitPlan, LaunchPlan
from framework.values.pool import Freedom, Resident
from framework.values.reason import Reason, Refused
from framework.values.request import ModelRequest, ModelSource, PoolLimits
from framework.values.speculation import NO_FACTS, SpecFacts
from tests.engines.requests import real_caps
from tests.support.memory_rows import measured_models

GIB = 1 << 30
ENTRY = Path("/opt/llama/llama-server")
GGUF = Path("/models/demo.gguf")
DENSE, EXPERTS = "llama-3.1-8b", "qwen3-30b-a3b"


def a_launch(
    model: str = DENSE,
    *,
    caps: Capabilities | None = None,
    environ: Mapping[str, str] | None = None,
    moe_layers: int = 0,
    about: SpecFacts = NO_FACTS,
    drafter: str | None = None,
    **request: Any,
) -> Launch:
    """A launch of one of the measured models; `request` are fields of the request. `drafter` is the measured
    model whose facts the drafter of `about` has."""
    measured = measured_models()[model]
    asked = ModelRequest(id="demo", source=ModelSource(path=GGUF), **request)
    size = sum(
        part.plain + part.repacked
        for layer in measured.table.layers
        for part in (layer.weights, layer.experts)
    )
    facts = LaunchFacts(
        binary=EngineBinary(ENTRY, ENTRY.parent, FileId(ENTRY, 1, 1), "manifest"),
        caps=caps or real_caps(),
        libraries=LibraryPath(),
        files=FileSet(GGUF, (), (FileId(GGUF, size, 1),)),
        file_ids=(FileId(GGUF, size, 1),),
        environ=environ or {},
        context_train=measured.shape.context_length or 0,
        moe_layers=moe_layers,
        spec=about,
        is_accelerated=True,
    )
    small = measured_models()[drafter] if drafter is not None else None
    memory = ModelMemory(
        measured.shape, measured.table, drafter=Drafter(small.shape, small.table) if small else None
    )
    return Launch(plan_launch(asked, 0, facts), facts, memory)


def a_card(number: int, free_gib: float, *, total_gib: float = 24.0, **fields: Any) -> Device:
    """A CUDA card."""
    values: dict[str, Any] = {"description": "a card"} | fields
    return Device(f"CUDA{number}", "gpu", int(total_gib * GIB), int(free_gib * GIB), **values)


def a_server(number: int, gib: float) -> Device:
    """A device behind a server of its own, which lists everything as free."""
    size = int(gib * GIB)
    return Device(f"RPC{number}", "rpc", size, size, endpoint=f"10.0.0.{number}:50052")


def host(free_gib: float = 64.0, *, total_gib: float = 64.0) -> Device:
    """Host memory."""
    return Device("CPU", "cpu", int(total_gib * GIB), int(free_gib * GIB))


def a_resident(name: str, gib: Mapping[str, float], **fields: Any) -> Resident:
    """An instance that is ready."""
    values: dict[str, Any] = {"pool": "default", "holding": "resident", "replica": 0} | fields
    sizes = {device: int(size * GIB) for device, size in gib.items()}
    return Resident(f"{name}.0.1", name, bytes=sizes, **values)


def a_pool(*devices: str, **fields: Any) -> PoolLimits:
    """A pool of these devices."""
    return PoolLimits("p", devices or ("auto",), **fields)


def placed(
    launch: Launch,
    *devices: Device,
    freedom: Freedom = "offloaded",
    residents: tuple[Resident, ...] = (),
    **site: Any,
) -> LaunchPlan:
    """The launch on these devices and a lot of host memory."""
    return place_launch(launch, Site((*devices, host()), residents, **site), freedom)


def refused(launch: Launch, *devices: Device, freedom: Freedom = "offloaded", **site: Any) -> Reason:
    """Why it is refused there."""
    with pytest.raises(Refused) as caught:
        placed(launch, *devices, freedom=freedom, **site)
    return caught.value.failure.reason


def codes(plan: LaunchPlan) -> list[str]:
    """Codes of its reasons."""
    return [reason.code for reason in plan.reasons]


def section(plan: LaunchPlan, name: str) -> str:
    """Tokens of a section of its line."""
    return " ".join(token for one in plan.sections if one.name == name for token in one.tokens)


def within_budgets(fit: FitPlan) -> bool:
    """Whether no device holds more than can be used of it."""
    return all(fit.needed_bytes(name) <= size for name, size in fit.budget_bytes.items())
