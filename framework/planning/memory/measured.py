"""Put an engine's own numbers into a memory plan. Pure. Called by planning.launch_measured.

The engine knows weights, caches with states, and compute buffers, in whole MiB. Where ours agree with them,
they are exact to the byte and stay; where not, the engine's stand. What its table leaves out keeps its basis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from framework.planning.memory.placement import HOST
from framework.values.measurement import MeasuredRow, MeasuredTable, Measurement
from framework.values.plan import FitPlan, MemoryLine

MIB = 1 << 20
# A buffer that holds weights in another order than the file.
REARRANGED = "_REPACK"
WEIGHTS = "weights"
DRAFTER = "drafter_"
PROJECTOR = "projector"


@dataclass(frozen=True)
class _Column:
    """A column of the table, and the lines of a device that it is about; new ones get the first label."""

    name: str
    labels: tuple[str, ...]


COLUMNS = (
    _Column("weights_mib", (WEIGHTS,)),
    _Column("context_mib", ("kv", "recurrent_state")),
    _Column("compute_mib", ("compute",)),
)
DRAFT_COLUMNS = (
    _Column("weights_mib", ("drafter_weights",)),
    _Column("context_mib", ("drafter_kv",)),
    _Column("compute_mib", ("drafter_compute",)),
)


def apply_measurement(fit: FitPlan, measured: Measurement) -> FitPlan:
    """The plan with what was measured: of the settings that were asked, or of those the engine put in place.

    `fits` is worked out anew. Remedies go when everything fits as it was asked. The settings that the plan
    names stay.
    """
    chosen = measured.choice.table if measured.choice is not None else ()
    lines = _replaced(fit.lines, chosen or measured.asked, COLUMNS)
    if measured.draft:
        lines = _replaced(lines, measured.draft, _draft_columns(fit, measured))
    if measured.projector_mib is not None:
        lines = [_projector(line, measured.projector_mib) for line in lines]
    totals: Counter[str] = Counter()
    for line in lines:
        totals[line.device] += line.bytes
    plan = replace(fit, lines=tuple(lines), total_bytes=dict(totals))
    if not plan.budget_bytes:
        return plan
    fits = all(plan.needed_bytes(device) <= size for device, size in plan.budget_bytes.items())
    moved = measured.choice is not None and measured.choice.gpu_layers is not None
    return replace(plan, fits=fits, remedies=() if fits and not moved else plan.remedies)


def _draft_columns(fit: FitPlan, measured: Measurement) -> tuple[_Column, ...]:
    """An embedded head shares the model's weights, which its table shows once more."""
    labels = {line.label for line in fit.lines if line.label.startswith(DRAFTER)}
    shared = [row.weights_mib for row in measured.draft] == [row.weights_mib for row in measured.asked]
    is_head = "drafter_weights" not in labels if labels else shared
    return DRAFT_COLUMNS[1:] if is_head else DRAFT_COLUMNS


def _replaced(
    lines: Sequence[MemoryLine], table: MeasuredTable, columns: Sequence[_Column]
) -> list[MemoryLine]:
    """All lines, those of `columns` as the table has them; a device that is not in it holds none of them."""
    labels = {label for column in columns for label in column.labels}
    devices = dict.fromkeys([*(line.device for line in lines), *(row.device for row in table)])
    found: list[MemoryLine] = []
    for device in sorted(devices, key=lambda name: name == HOST):  # stable: GPUs in their order, host last
        own = [line for line in lines if line.device == device]
        rows = [row for row in table if row.device == device]
        for column in columns:
            found += _of_column(device, own, rows, column)
        found += [line for line in own if line.label not in labels]
    return found


def _of_column(
    device: str, own: Sequence[MemoryLine], rows: Sequence[MeasuredRow], column: _Column
) -> list[MemoryLine]:
    mine = [line for line in own if line.label in column.labels]
    empty = MemoryLine(device, column.labels[0], 0, "measured")
    if column.labels[0] != WEIGHTS or device != HOST:
        return _settled(empty, mine, [getattr(row, column.name) for row in rows])
    # Weights in host memory: those used as the file has them, and those in another order, never mapped.
    as_in_file = [row.weights_mib for row in rows if not row.buffer.endswith(REARRANGED)]
    rearranged = [row.weights_mib for row in rows if row.buffer.endswith(REARRANGED)]
    empty_in_file = replace(empty, mapped=any(line.mapped for line in mine))
    return [*_settled(empty_in_file, mine[:1], as_in_file), *_settled(empty, mine[1:], rearranged)]


def _settled(empty: MemoryLine, own: Sequence[MemoryLine], numbers: Sequence[int]) -> list[MemoryLine]:
    """`own` where their sum rounds to that of the numbers; else the largest line takes the difference."""
    measured = sum(numbers) * MIB
    computed = sum(line.bytes for line in own)
    if own and measured <= computed < measured + len(numbers) * MIB:
        return [replace(line, basis="measured") for line in own]
    if not own:
        return [replace(empty, bytes=measured)] if measured else []
    largest = max(range(len(own)), key=lambda index: own[index].bytes)
    left = measured - (computed - own[largest].bytes)
    if left < 0:  # then nothing is known of how it divides
        return [replace(own[largest], bytes=measured, basis="measured")] if measured else []
    lines = list(own)
    lines[largest] = replace(own[largest], bytes=left, basis="measured")
    return [line for line in lines if line.bytes]


def _projector(line: MemoryLine, mib: int) -> MemoryLine:
    return replace(line, bytes=mib * MIB, basis="measured") if line.label == PROJECTOR else line
