"""What a changed pool or pick of devices does to what runs (07 §3.7). Pure; called by compare.

A pool is inventory: only losing a device in use restarts. A pick says something about one model, so that a
different one restarts, unless it names what is in use already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from framework.engines.args import RPC_FLAG, values_of
from framework.values.action import FieldChange
from framework.values.device_words import AUTO, CPU, REMOTE, UUIDS
from framework.values.instance import InstanceView
from framework.values.plan import LaunchPlan
from framework.values.request import Effect, ModelRequest, PoolLimits

REMOTE_NAME = "RPC"
NEXT_PLAN = "used by the next plan; what runs keeps what it has"


def pool_changes(old: ModelRequest, new: ModelRequest, running: InstanceView | None) -> Iterator[FieldChange]:
    """Every field of the pool that differs, whether the manifest changed the pool or the model its pool."""
    before, after = old.pool, new.pool
    loss = _loss(before, after, running)
    effects: dict[str, tuple[Effect, str]] = {
        "name": ("restart" if loss.is_certain else "nothing", loss.why),
        "devices": ("restart" if loss.is_certain else "nothing", loss.why),
        "evict": ("live", "looked at when room is made the next time"),
    }
    for field in fields(PoolLimits):
        was, now = getattr(before, field.name), getattr(after, field.name)
        if was != now:
            name = f"pools.{after.name}.{field.name.removesuffix('_bytes')}"
            effect, why = effects.get(field.name, ("nothing", NEXT_PLAN))
            yield FieldChange(name, was, now, effect, why)


def same_pick(old: ModelRequest, new: ModelRequest, running: InstanceView | None) -> str:
    """Why another pick changes nothing: it names exactly what is in use; else ""."""
    if running is None or running.plan is None or old.devices is None or new.devices is None:
        return ""
    used = _used(running.plan)
    is_same = used is not None and used.spelled == frozenset(new.devices)
    return "the devices in use are the ones picked" if is_same else ""


@dataclass(frozen=True)
class _Loss:
    is_certain: bool
    why: str


@dataclass(frozen=True)
class _Used:
    """Devices that a launch was given."""

    local: frozenset[str]
    servers: frozenset[str]
    """As `rpc://host:port`."""

    @property
    def spelled(self) -> frozenset[str]:
        """As a pick would name them."""
        return (self.local | self.servers) or frozenset({CPU})


def _loss(before: PoolLimits, after: PoolLimits, running: InstanceView | None) -> _Loss:
    if running is None:
        return _Loss(False, "no instance runs; used at the next start")
    if running.request.pool.devices == after.devices:
        return _Loss(False, "what runs has these devices already")
    used = None if running.plan is None else _used(running.plan)
    lost = _lost(before, after) if used is None else _lost_of(used, running.request.pool, after)
    if lost:
        return _Loss(True, f"{', '.join(sorted(lost))} is in use and not in the pool any more")
    return _Loss(False, "every device in use is still in the pool; a new plan may use others")


def _used(plan: LaunchPlan) -> _Used | None:
    """What a plan names; None where the engine was left to choose."""
    placement = plan.placement
    if placement.is_delegated and not placement.devices:
        return None
    given = ",".join(values_of(plan.argv, (RPC_FLAG,)))
    servers = frozenset(f"{REMOTE}{server.strip()}" for server in given.split(",") if server.strip())
    local = frozenset(name for name in placement.devices if not name.startswith(REMOTE_NAME))
    return _Used(local, servers)


def _lost(before: PoolLimits, after: PoolLimits) -> set[str]:
    """What the pool had and has not, where nobody knows what of it is in use."""
    gone = set(before.devices) - set(after.devices)
    return {one for one in gone if one.startswith(REMOTE)} if AUTO in after.devices else gone


def _lost_of(used: _Used, before: PoolLimits, after: PoolLimits) -> set[str]:
    lost = {server for server in used.servers if server not in after.devices}
    if AUTO in after.devices:
        return lost
    if not used.local and not used.servers:
        return set() if CPU in after.devices else {CPU}
    # A device that the pool did not name itself came with `auto`, or by a UUID.
    unnamed = {one for one in before.devices if one == AUTO or one.startswith(UUIDS)}
    keeps_unnamed = unnamed <= set(after.devices)
    for name in used.local - set(after.devices):
        if name in before.devices or not keeps_unnamed:
            lost.add(name)
    return lost
