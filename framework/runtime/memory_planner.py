"""Add the memory plan to a launch plan (03, 04 §10). Called by runtime.planner, in worker threads.

What cannot be planned is a reason and keeps no model from being started.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from framework.hardware.devices import DeviceList
from framework.models.facts import ModelFacts
from framework.planning.launch_memory import (
    LaunchMemory,
    ModelMemory,
    layer_fault,
    plan_launch_memory,
    unplanned,
)
from framework.planning.line_settings import read_line
from framework.planning.memory import ModelShape, TensorTable, Variant, shape_of, table_of
from framework.planning.pool_hardware import hardware_of
from framework.runtime.identity import file_id
from framework.values.engine import FileId
from framework.values.plan import LaunchPlan

log = logging.getLogger(__name__)

# More models than anybody serves at once.
MOST_MODELS = 256


class MemoryPlanner:
    """Plans memory; remembers what it worked out of each model's files."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[FileId, ...], ModelShape, TensorTable]] = {}

    def with_memory(
        self,
        plan: LaunchPlan,
        facts: ModelFacts,
        devices: DeviceList,
        *,
        variants: Sequence[Variant] = (),
        projector_bytes: int = 0,
    ) -> LaunchPlan:
        """The plan with `fit` filled in, and why it is not what was asked. Never raises.

        Command line and fingerprint stay: what is free at the moment must not restart a model. `variants` can
        be had instead of the model; `projector_bytes` is of one that is not here yet.
        """
        try:
            memory = self._plan(plan, facts, devices, variants, projector_bytes)
        except Exception:
            log.exception("memory of %s cannot be planned", plan.main_gguf)
            memory = unplanned("planning it failed; the log has the details")
        return replace(plan, fit=memory.fit, reasons=(*plan.reasons, *devices.reasons, *memory.reasons))

    def _plan(
        self,
        plan: LaunchPlan,
        facts: ModelFacts,
        devices: DeviceList,
        variants: Sequence[Variant],
        projector_bytes: int,
    ) -> LaunchMemory:
        if fault := layer_fault(facts.header.n_layers):
            return unplanned(fault)
        shape, tensors = self._sizes(facts)
        model = ModelMemory(
            shape,
            tensors,
            projector_bytes=_total_bytes([plan.projector] if plan.projector else []) or projector_bytes,
            adapter_bytes=_total_bytes(path for path, _ in plan.request.adapters),
            variants=variants,
        )
        line = read_line(plan.argv, plan.env)
        hardware = hardware_of(devices.devices, plan.request.pool, line.devices)
        return plan_launch_memory(line, model, hardware)

    def _sizes(self, facts: ModelFacts) -> tuple[ModelShape, TensorTable]:
        known = self._known.get(facts.files.main)
        if known is None or known[0] != facts.files.files:
            known = (facts.files.files, shape_of(facts.header), table_of(facts.tensors))
            if len(self._known) >= MOST_MODELS:
                self._known.clear()
            self._known[facts.files.main] = known
        return known[1:]


def _total_bytes(paths: Iterable[Path]) -> int:
    return sum(identity.size for path in paths if (identity := file_id(path)))
