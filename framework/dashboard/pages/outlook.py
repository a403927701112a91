"""Memory before and after an edit: each device as two bars, each changed model with what it gets. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from framework.api.answers import DeviceOutlook, ModelOutlook, Outlook, RefusedInstance
from framework.api.shapes.plan import granted_cache_json
from framework.dashboard.formats import share
from framework.values.plan import LaunchPlan
from framework.values.reason import Reason
from framework.values.units_text import count, size

NOT_THERE = "not declared"
REFUSED = "does not start"
LEFT_OPEN = "left to the engine"


@dataclass(frozen=True)
class DeviceRow:
    """A device; shares are of all its memory, `change` says the difference in words."""

    device: str
    total: str
    before: str
    after: str
    before_share: float
    after_share: float
    change: str
    tone: str


@dataclass(frozen=True)
class Given:
    """What a plan gives, as texts."""

    context: str
    slots: str
    cache: str
    memory: str


@dataclass(frozen=True)
class ModelChange:
    """A model with what it has and what it would get. `reasons` are those that the edit brings."""

    model: str
    when: str
    before: Given
    after: Given
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class OutlookTable:
    """Everything about memory. `unplanned` says how many models are left out, empty for none."""

    devices: tuple[DeviceRow, ...]
    models: tuple[ModelChange, ...]
    unplanned: str


def outlook_table(memory: Outlook) -> OutlookTable:
    """The table of an outlook."""
    rows = tuple(device_row(one) for one in memory.devices if one.before_bytes or one.after_bytes)
    unplanned = f"{memory.unplanned} more changed models were not planned." if memory.unplanned else ""
    return OutlookTable(rows, tuple(_model(one) for one in memory.models), unplanned)


def device_row(one: DeviceOutlook) -> DeviceRow:
    """A device before and after."""
    more = one.after_bytes - one.before_bytes
    change = f"{size(more)} more" if more > 0 else f"{size(-more)} less" if more < 0 else "as before"
    is_full = bool(one.total_bytes) and one.after_bytes > one.total_bytes
    return DeviceRow(
        one.device,
        size(one.total_bytes),
        size(one.before_bytes),
        size(one.after_bytes),
        share(one.before_bytes, one.total_bytes),
        share(one.after_bytes, one.total_bytes),
        change,
        "bad" if is_full else "busy",
    )


def given(plan: LaunchPlan | RefusedInstance | None) -> Given:
    """What a plan gives."""
    if plan is None:
        return Given(NOT_THERE, "", "", "")
    if isinstance(plan, RefusedInstance):
        return Given(REFUSED, "", "", "")
    context = plan.fit.context or plan.context
    held = plan.placement.counted_bytes
    cache = granted_cache_json(plan.fit.cache_types if plan.fit.context is not None else plan.cache_types)
    kinds = tuple(dict.fromkeys(cache.values()))
    return Given(
        f"{count(context)} tokens" if context else LEFT_OPEN,
        str(plan.slots),
        " / ".join(kinds),
        ", ".join(f"{size(taken)} on {device}" for device, taken in held.items() if taken) or LEFT_OPEN,
    )


def new_reasons(
    before: LaunchPlan | RefusedInstance | None, after: LaunchPlan | RefusedInstance | None
) -> tuple[Reason, ...]:
    """What is told of a plan that was not told of the one before; why it is refused comes always."""
    if isinstance(after, RefusedInstance):
        return (after.failure.reason,)
    known = {reason.code for reason in _told(before)}
    return tuple(reason for reason in _told(after) if reason.code not in known)


def _told(plan: LaunchPlan | RefusedInstance | None) -> Iterable[Reason]:
    if plan is None or isinstance(plan, RefusedInstance):
        return ()
    return (*plan.reasons, *plan.spec.notes, *((plan.spec.reason,) if plan.spec.reason else ()))


def _model(one: ModelOutlook) -> ModelChange:
    when = "with this apply" if one.runs else "at its next start"
    return ModelChange(
        one.model, when, given(one.before), given(one.after), new_reasons(one.before, one.after)
    )
