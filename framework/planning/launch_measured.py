"""A launch plan with what the engine itself said about its memory, and whether an answer still holds. Pure.

Called by runtime.measuring, for fresh answers and for remembered ones. The engine's word replaces ours: which
memory, which context, what goes to host memory. Command line and fingerprint stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from framework.planning.launch_memory import notes_on
from framework.planning.line_settings import line_of
from framework.planning.memory.measured import apply_measurement
from framework.planning.memory_reasons import context_fitted, does_not_fit
from framework.planning.placement.choice import grows_of, mapped_of, needs_of
from framework.values.device import Device
from framework.values.measurement import EngineChoice, MeasuredRow, MeasuredTable, Measurement
from framework.values.plan import FitPlan, LaunchPlan
from framework.values.reason import Reason
from framework.values.units_text import tokens

MIB = 1 << 20
# Free memory that comes and goes without changing anything.
UNREST_MIB = 256
# What the engine leaves free on each device unless told otherwise (--fit-target).
FIT_MARGIN_MIB = 1024
# What we said about memory before the engine did; and, where its fit step decides, what that would come to.
REPLACED = frozenset({"does_not_fit", "planning_fault", "memory_may_grow", "slot_context_small"})
DECIDED = frozenset({"context_fitted", "layers_delegated"})


def with_measurement(plan: LaunchPlan, measured: Measurement) -> LaunchPlan:
    """The plan with measured lines, the settings that they are for, and reasons for those."""
    line = line_of(plan)
    asked_tokens = line.cache.n_ctx or plan.context_train
    choice = measured.choice if measured.choice is not None and measured.choice.table else None
    fit = apply_measurement(plan.fit, measured)
    fit = replace(
        fit,
        context=(choice.context if choice else None) or asked_tokens or fit.context,
        slots=line.cache.slots,
        cache_types=(line.cache.key_type, line.cache.value_type),
    )
    if choice is not None and choice.gpu_layers is not None:
        fit = replace(fit, gpu_layers=choice.gpu_layers, cpu_experts=choice.partial_layers)
    elif line.may_move and any(row.free_mib is not None for row in measured.asked):
        fit = replace(fit, gpu_layers=line.offload.gpu_layers, cpu_experts=0)  # also where we had moved some
    ours = REPLACED | DECIDED if plan.placement.is_delegated else REPLACED
    kept = [reason for reason in plan.reasons if reason.code not in ours]
    placement = replace(
        plan.placement,
        needs_bytes=needs_of(fit, plan.placement.devices),
        grows_bytes=grows_of(fit),
        mapped_bytes=mapped_of(fit),
    )
    reasons = (*kept, *_reasons(fit, choice, asked_tokens))
    return replace(plan, fit=fit, placement=placement, reasons=reasons)


def by_outside_names(measured: Measurement, child_names: Mapping[str, str]) -> Measurement:
    """The answer of an engine that was shown only some devices, by the names that everybody else uses."""
    outside = {child: name for name, child in child_names.items()}

    def table(rows: MeasuredTable) -> MeasuredTable:
        return tuple(replace(row, device=outside.get(row.device, row.device)) for row in rows)

    choice = measured.choice and replace(measured.choice, table=table(measured.choice.table))
    return replace(measured, asked=table(measured.asked), draft=table(measured.draft), choice=choice)


def still_holds(plan: LaunchPlan, measured: Measurement, devices: Iterable[Device]) -> bool:
    """Whether the engine would say the same now: what its fit step does depends on what is free.

    `devices` have the names that they had then (`measurement_key`).
    """
    line = line_of(plan)
    if not (line.may_shorten or line.may_move):
        return True
    free_mib = {device.name: device.free_bytes // MIB for device in devices}
    rows = [row for row in measured.asked if row.free_mib is not None]
    return all(
        row.device in free_mib and _says_the_same(row, measured.choice, free_mib[row.device]) for row in rows
    )


def _says_the_same(row: MeasuredRow, choice: EngineChoice | None, free_mib: int) -> bool:
    before_mib = row.free_mib or 0
    if choice is not None:
        return abs(free_mib - before_mib) <= UNREST_MIB
    return free_mib >= min(before_mib - UNREST_MIB, row.total_mib + FIT_MARGIN_MIB)


def _reasons(fit: FitPlan, choice: EngineChoice | None, asked_tokens: int) -> list[Reason]:
    found = []
    if choice is not None and choice.context:
        found.append(context_fitted(asked_tokens, choice.context))
    if choice is not None and choice.gpu_layers is not None:
        found.append(_delegated(fit))
    if fit.fits is False:
        found.append(does_not_fit(fit, fit.remedies, severity="warning"))
    return [*found, *notes_on(fit)]


def _delegated(fit: FitPlan) -> Reason:
    experts = f", {fit.cpu_experts} of them without their experts" if fit.cpu_experts else ""
    return Reason(
        "layers_delegated",
        f"The engine measured that not everything fits on GPUs with a context of {tokens(fit.context)}: it"
        f" puts {fit.gpu_layers} layers there{experts}, and the rest into host memory, which is slower.",
        "`paddock plan` says what helps: a smaller kv_cache, a shorter context, a smaller variant.",
        "warning",
        {"gpu_layers": fit.gpu_layers, "cpu_experts": fit.cpu_experts},
    )
