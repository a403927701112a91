"""Facts about a manifest and this machine: engines, devices, plans, and what an apply would do.

Called by `app` for the routes and by the commands that need no server; both get the same answers. Starts
engine binaries for their help text and device list only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from framework.api.answers import DevicesAnswer, DiffAnswer, EngineAnswer, PlanAnswer, RefusedInstance
from framework.engines.child_env import without_secrets
from framework.engines.discovery import find_binary
from framework.engines.probe import CapabilityCache
from framework.hardware.devices import DeviceList, host_memory, list_devices
from framework.hardware.driver import loaded_driver
from framework.hardware.membership import in_pools, servers_of
from framework.manifest.load import Loaded
from framework.reconcile.actions import plan_actions
from framework.values.device import Device
from framework.values.device_words import CPU
from framework.values.engine import Capabilities, EngineBinary, EngineRef
from framework.values.instance import ModelView
from framework.values.manifest import Manifest
from framework.values.plan import LaunchPlan
from framework.values.reason import Reason, Refused
from framework.values.request import ModelRequest, same_launch


class Plans(Protocol):
    """Whoever can show what a start would get."""

    async def plan(self, request: ModelRequest, replica: int) -> LaunchPlan:
        """The plan, or values.reason.Refused. Only files that are here already count."""
        ...


class AskDevices(Protocol):
    """What an engine lists as its devices, and servers have: asked now, or known from just before."""

    async def __call__(
        self, binary: EngineBinary, environ: Mapping[str, str], /, *, rpc: Sequence[str] = ()
    ) -> DeviceList:
        """`rpc` are servers, `host:port` each, in the order in which their devices are counted."""
        ...


async def list_engines(
    manifest: Manifest, environ: Mapping[str, str], probes: CapabilityCache
) -> tuple[EngineAnswer, ...]:
    """Every engine table with the binary it comes to and what that can do, in declared order."""
    refs = manifest.engines.values()
    return tuple(await asyncio.gather(*(_engine(ref, manifest, environ, probes) for ref in refs)))


async def list_all_devices(
    manifest: Manifest,
    environ: Mapping[str, str],
    ask: AskDevices = list_devices,
    *,
    driver: Callable[[], str] = loaded_driver,
) -> DevicesAnswer:
    """The devices of all engines and of the pools' servers, each name once, with its pool; host memory is
    always there. `driver` names what shows that there is a GPU, whatever engines say."""
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
    servers = servers_of(manifest.pools.values())
    # One after the other: a server answers one program at a time.
    lists = [await ask(binary, probed, rpc=servers) for binary in binaries.values()]
    for reason in (reason for found in lists for reason in found.reasons):
        if reason not in reasons:
            reasons.append(reason)
    known = _merged(lists) or [host_memory()]
    wants_gpu = any(set(pool.devices) != {CPU} for pool in manifest.pools.values())
    if wants_gpu and lists and not any(device.kind == "gpu" for device in known):
        present = await asyncio.to_thread(driver)
        if present and (finding := gpu_not_listed(present, reasons)) not in reasons:
            reasons.append(finding)
    return DevicesAnswer(in_pools(known, manifest.pools.values()), tuple(reasons))


def gpu_not_listed(driver: str, reasons: Sequence[Reason]) -> Reason:
    """A GPU that no engine sees: models would run on the processor without a word. `driver` says what of it
    there is to see without an engine, `reasons` what is known of the list."""
    known = next((reason for reason in reasons if reason.code == "devices_unknown"), None)
    return known or Reason(
        "gpu_not_listed",
        f"This machine has {driver}, but no engine lists a GPU: models run on the processor.",
        "Use an engine that is built for this GPU, check that its driver works, and that no variable such as"
        " CUDA_VISIBLE_DEVICES hides it.",
        "warning",
        {"driver": driver},
    )


async def plan_all(
    manifest: Manifest, planner: Plans, devices: DevicesAnswer, *, only: str | None = None
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
    """Launches that run with what is asked of them keep the plan they were started with: what is free now is
    what they left."""
    live = {
        (instance.model, instance.replica): instance.plan
        for view in views
        for instance in view.instances
        if instance.pid is not None and instance.plan is not None
    }

    def shown(plan: LaunchPlan | RefusedInstance) -> LaunchPlan | RefusedInstance:
        running = live.get((plan.request.id, plan.replica))
        asked = plan.request
        return running if running is not None and same_launch(running.request, asked) else plan

    return replace(answer, instances=tuple(map(shown, answer.instances)))


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


async def _planned(request: ModelRequest, replica: int, planner: Plans) -> LaunchPlan | RefusedInstance:
    try:
        return await planner.plan(request, replica)
    except Refused as refusal:
        return RefusedInstance(request, replica, refusal.failure)


def _merged(lists: Iterable[DeviceList]) -> list[Device]:
    """Each name once, host memory last, as every list has it."""
    devices: dict[str, Device] = {}
    for found in lists:
        for device in found.devices:
            # Engines may disagree about what they see of a card; the one in front in the manifest counts.
            devices.setdefault(device.name, device)
    return sorted(devices.values(), key=lambda device: device.kind == "cpu")
