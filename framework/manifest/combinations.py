"""What a model asks for, taken together with `[defaults]`: keys that are fine alone and not with each other.

Called by `load.py` per model. A problem points at the key where it is written, so what `[defaults]` gets
wrong is said once and not once a model.
"""

from __future__ import annotations

from typing import Any

from framework.manifest.engine_args import last_value, normalised, reserved_flags
from framework.manifest.findings import Findings, Place, shown
from framework.manifest.kv_types import FLOAT_KV_TYPES
from framework.manifest.schema_model import DefaultsTable, ModelTable
from framework.manifest.tables import Entry, Tables

MANUAL_ONLY = ("gpu_layers", "cpu_experts", "tensor_split")
FLASH_OFF = frozenset({"off", "disabled", "false", "0"})


def check_model(
    merged: ModelTable, entry: Entry[ModelTable], defaults: Entry[DefaultsTable] | None, findings: Findings
) -> None:
    """Note what does not go together; `merged` is the model with what it inherits."""
    scope = _Scope(entry, defaults)
    _check_value_cache(merged, scope, findings)
    _check_batch(merged, scope, findings)
    _check_placement(merged, scope, findings)


def check_engine_args(tables: Tables, findings: Findings) -> None:
    """Note flags that are not the user's (06 §5.2). The value behind one is not repeated: it may be a key."""
    for entry in tables.asking():
        for index, flag, instead in reserved_flags(entry.table.engine_args):
            place = entry.place.child("engine_args", index)
            findings.add("reserved_flag", place, f"{place.name}: {flag} is reserved: {instead}", found=flag)


class _Scope:
    """Where a key of a model is written: in its own table, else in `[defaults]`."""

    def __init__(self, own: Entry[ModelTable], defaults: Entry[DefaultsTable] | None) -> None:
        self.own = own
        self.defaults = defaults
        self.entries: tuple[Entry[DefaultsTable], ...] = (own,) if defaults is None else (own, defaults)

    def place(self, *path: str) -> Place:
        """The place of a key, wherever it is written; of the model when it is nowhere."""
        for entry in self.entries:
            node: Any = entry.raw
            for part in path:
                node = node.get(part) if isinstance(node, dict) else None
            if node is not None:
                return entry.place.child(*path)
        return self.own.place.key

    def nearest(self, *paths: tuple[str, ...]) -> Place:
        """The place of the first of these keys that the model writes itself, else of the first one."""
        own = [path for path in paths if path[0] in self.own.raw]
        return self.place(*(own or paths)[0])


def _check_value_cache(merged: ModelTable, scope: _Scope, findings: Findings) -> None:
    """A quantised value cache without flash attention kills the engine, often without a line (15 §7)."""
    args = normalised(merged.engine_args)
    by_flag = last_value(args, "-ctv", "--cache-type-v")
    value_type = by_flag or merged.kv_cache.v or merged.environment.get("LLAMA_ARG_CACHE_TYPE_V")
    flash = last_value(args, "-fa", "--flash-attn") or merged.flash_attention
    if value_type is None or value_type.lower() in FLOAT_KV_TYPES or flash not in FLASH_OFF:
        return
    written = "kv_cache" if merged.kv_cache.v else "environment"
    place = scope.nearest(("engine_args" if by_flag else written,), ("flash_attention",))
    message = f"{place.name}: the value cache {shown(value_type)} needs flash attention, which is off"
    floats = ", ".join(sorted(FLOAT_KV_TYPES))
    findings.add(
        "quantised_v_cache",
        place,
        f'{message}; set flash_attention = "on", or use one of {floats} for v',
        found=shown(value_type),
        allowed=floats,
    )


def _check_batch(merged: ModelTable, scope: _Scope, findings: Findings) -> None:
    batch = merged.batch
    if batch.physical > batch.logical:
        written = scope.place("batch", "physical")
        place = written if written != scope.own.place.key else scope.place("batch", "logical")
        message = f"{place.name}: batch.physical, {batch.physical}, is above batch.logical, {batch.logical}"
        findings.add(
            "batch_sizes", place, message, found=str(batch.physical), allowed=f"at most {batch.logical}"
        )


def _check_placement(merged: ModelTable, scope: _Scope, findings: Findings) -> None:
    placement = merged.placement
    if placement.mode == "manual":
        return
    for entry in scope.entries:
        if entry is scope.defaults and entry.table.placement.mode == "manual":
            continue  # the model went back to automatic: what it inherits has no effect, by its own wish
        for key in MANUAL_ONLY:
            if key in entry.table.placement.model_fields_set:
                place = entry.place.child("placement", key)
                message = f'{place.name} needs placement.mode = "manual"'
                findings.add("manual_only", place.key, message, suggestion='mode = "manual"')
