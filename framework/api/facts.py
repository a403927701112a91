"""Facts about a manifest and this machine: engines, devices, plans, and what an apply would do.

Called by `app` for the routes and by the commands that need no server; both get the same answers. Starts
engine binaries for their help text and device list only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from framework.api.answers import DevicesAnswer, DiffAnswer, EngineAnswer, PlanAnswer, RefusedInstance
from framework.engines.child_env import without_secrets
from framework.engines.discovery import find_binary
from framework.engines.probe import CapabilityCache
from framework.hardware.devices import DeviceList, host_memory, list_devices
from framework.manifest.load import Loaded
from framework.reconcile.actions import plan_actions
from framework.values.device import Device
from framework.values.engine import Capabilities, EngineBinary, EngineRef
from framework.values.instance import ModelView
from framework.values.manifest import Manifest
from framework.values.plan import LaunchPlan
from framework.values.reason import Reason, Refused
from framework.values.request import ModelRequest, PoolLimits

# A third of a second for a client of engines, which the commands that start none need not wait for.
if TYPE_CHECKING:
    from framework.runtime.shop import Planner

AskDevices = Callable[[EngineBinary, Mapping[str, str]], Awaitable[DeviceList]]
"""What an engine lists as its devices: asked now, or known from just before."""


async def list_engines(
    manifest: Manifest, environ: Mapping[str, str], probes: CapabilityCache
) -> tuple[EngineAnswer, ...]:
    """Every engine table with the binary it comes to and what that can do, in declared order."""
    refs = manifest.engines.values()
    return tuple(await asyncio.gather(*(_engine(ref, manifest, environ, probes) for ref in refs)))


async def list_all_devices(
    manifest: Manifest, environ: Mapping[str, str], ask: AskDevices = list_devices
) -> DevicesAnswer:
    """The devices of all engines, each name once, with its pool; host memory is always there."""
    reasons: list[Reason] = []
    binaries: dict[object, EngineBinary] = {}
    for ref in manifest.engines.values():
        try:
            binary = await _find(ref, manifest, environ)
        except Refused as refusal:
            reasons.append(refusal.failure.reason)
        else:
            binaries[binary.file] = binary
    probed = without_secrets(environ, manifest.secret_names)
    lists = await asyncio.gather(*(ask(binary, probed) for binary in binaries.values()))
    reasons.extend(reason for found in lists for reason in found.reasons)
    known = _merged(lists) or [host_memory()]
    return DevicesAnswer(in_pools(known, manifest.pools.values()), tuple(reasons))


async def plan_all(
    manifest: Manifest, planner: Planner, devices: DevicesAnswer, *, only: str | None = None
) -> PlanAnswer:
    """Plan every replica, or those of one model; a refusal stands in its place. Starts nothing."""
    wanted = [request for request in manifest.models.values() if only in (None, request.id)]
    instances = [
        await _planned(request, replica, planner)
        for request in wanted
        for replica in range(request.live.replicas)
    ]
    return PlanAnswer(manifest.path, manifest.sha256, devices.devices, tuple(instances), devices.reasons)


def as_running(answer: PlanAnswer, views: Iterable[ModelView]) -> PlanAnswer:
    """Launches that run as they are planned keep the memory plan they were started with: what is free now is
    what they left."""
    live = {
        (instance.model, instance.replica): instance.plan
        for view in views
        for instance in view.instances
        if instance.pid is not None and instance.plan is not None
    }

    def shown(plan: LaunchPlan | RefusedInstance) -> LaunchPlan | RefusedInstance:
        running = live.get((plan.request.id, plan.replica))
        if isinstance(plan, RefusedInstance) or running is None or running.fingerprint != plan.fingerprint:
            return plan
        return replace(plan, fit=running.fit, reasons=running.reasons)

    return replace(answer, instances=tuple(map(shown, answer.instances)))


def in_pools(devices: Sequence[Device], pools: Iterable[PoolLimits]) -> tuple[Device, ...]:
    """The devices, each with the first pool that takes it; None where none does, whatever it had before."""
    accelerated = any(device.kind != "cpu" for device in devices)
    ordered = tuple(pools)

    def pool_of(device: Device) -> str | None:
        taking = (pool.name for pool in ordered if _takes(pool, device, accelerated=accelerated))
        return next(taking, None)

    return tuple(replace(device, pool=pool_of(device)) for device in devices)


def preview(loaded: Loaded, views: Iterable[ModelView]) -> DiffAnswer:
    """What applying a loaded text would do to the models as they are now."""
    if loaded.manifest is None:
        return DiffAnswer(problems=loaded.problems)
    return DiffAnswer(tuple(plan_actions(loaded.manifest.models, views)), loaded.problems)


def inconclusive(ref: EngineRef, binary: EngineBinary, caps: Capabilities) -> Reason:
    """Why it is not certain what an engine can do."""
    return Reason(
        "probe_inconclusive",
        f"engine '{ref.name}': {binary.entry} {caps.fault or 'did not say what it can do'}.",
        f"Run {binary.entry} --help to see what it says; this machine may need another build of it.",
        "warning",
        {"path": str(binary.entry)},
    )


async def _engine(
    ref: EngineRef, manifest: Manifest, environ: Mapping[str, str], probes: CapabilityCache
) -> EngineAnswer:
    try:
        binary = await _find(ref, manifest, environ)
    except Refused as refusal:
        return EngineAnswer(ref, reasons=(refusal.failure.reason,))
    caps = await probes.get(binary, without_secrets(environ, manifest.secret_names))
    reasons = () if caps.conclusive else (inconclusive(ref, binary, caps),)
    return EngineAnswer(ref, binary, caps, reasons)


async def _find(ref: EngineRef, manifest: Manifest, environ: Mapping[str, str]) -> EngineBinary:
    base_dir = manifest.path.absolute().parent
    return await asyncio.to_thread(find_binary, ref, environ, base_dir=base_dir)


async def _planned(request: ModelRequest, replica: int, planner: Planner) -> LaunchPlan | RefusedInstance:
    try:
        return await planner.plan(request, replica)
    except Refused as refusal:
        return RefusedInstance(request, replica, refusal.failure)


def _merged(lists: Iterable[DeviceList]) -> list[Device]:
    """Each name once, host memory last, as every list has it."""
    devices = {device.name: device for found in lists for device in found.devices}
    return sorted(devices.values(), key=lambda device: device.kind == "cpu")


def _takes(pool: PoolLimits, device: Device, *, accelerated: bool) -> bool:
    """By name; `cpu` takes host memory; `auto` takes all others or, where there are none, host memory."""
    if device.kind == "cpu":
        return "cpu" in pool.devices or ("auto" in pool.devices and not accelerated)
    return device.name in pool.devices or "auto" in pool.devices
