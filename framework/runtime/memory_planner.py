"""What memory planning knows of a model's files (03 §1). Called by runtime.planner, in worker threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from framework.models.facts import FactsReader, ModelFacts
from framework.models.regular_file import file_fault
from framework.planning.launch import LaunchFacts
from framework.planning.launch_memory import ModelMemory, layer_fault
from framework.planning.launch_site import Launch
from framework.planning.line_settings import line_of
from framework.planning.memory.drafter import Drafter
from framework.planning.memory.remedies import Variant
from framework.planning.memory.shape import ModelShape, shape_of
from framework.planning.memory.tensor_table import TensorTable, table_of
from framework.runtime.identity import file_id
from framework.values.engine import FileId
from framework.values.plan import LaunchPlan
from framework.values.reason import Refused

# More models than anybody serves at once.
MOST_MODELS = 256


class MemoryPlanner:
    """Remembers what it worked out of each model's files."""

    def __init__(self, reader: FactsReader | None = None) -> None:
        """`reader` reads the files of drafters."""
        self._reader = reader or FactsReader()
        self._known: dict[Path, tuple[tuple[FileId, ...], ModelShape, TensorTable]] = {}

    def launch(
        self,
        plan: LaunchPlan,
        facts: LaunchFacts,
        model: ModelFacts,
        *,
        variants: Sequence[Variant] = (),
        projector_bytes: int = 0,
    ) -> Launch:
        """A launch with all that its place depends on, save what is free.

        `variants` can be had instead of the model; `projector_bytes` is of one that is not here yet.
        """
        fault = layer_fault(model.header.n_layers)
        shape, tensors = (ModelShape(), TensorTable()) if fault else self._sizes(model)
        drafter, drafter_bytes = self._drafter(plan)
        memory = ModelMemory(
            shape,
            tensors,
            drafter=drafter,
            drafter_bytes=drafter_bytes,
            projector_bytes=_total_bytes([plan.projector] if plan.projector else []) or projector_bytes,
            adapter_bytes=_total_bytes(path for path, _ in plan.request.adapters),
            variants=variants,
        )
        return Launch(plan, facts, memory, fault)

    def _drafter(self, plan: LaunchPlan) -> tuple[Drafter | None, int]:
        """The separate drafter on a line, and the size of its file; None where that says too little."""
        named = line_of(plan).drafter
        if named is None or not Path(named).is_absolute() or file_fault(Path(named)):
            return None, 0
        path = Path(named)
        try:
            facts = self._reader.read(path)
        except Refused:
            return None, _total_bytes([path])
        is_sized = facts.header.n_layers and layer_fault(facts.header.n_layers) is None
        return Drafter(*self._sizes(facts)) if is_sized else None, facts.files.total_bytes

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
