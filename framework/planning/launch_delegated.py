"""Launches whose placement is the engine's or the user's: follow what will come of it (04 §10.9, §11). Pure.

Called by planning.launch_place. The line keeps the engine's fit step, or the layers that manual mode names;
what it says of devices are those of the pool. Manual mode is never refused for memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from framework.planning.launch import Place, directed
from framework.planning.launch_memory import LaunchMemory, plan_launch_memory, unplanned
from framework.planning.launch_site import Launch, Site
from framework.planning.line_settings import names_devices, owns_placement, read_line
from framework.planning.memory import Hardware
from framework.planning.memory_reasons import does_not_fit, file_does_not_fit
from framework.planning.placement.by_size import place_by_size
from framework.planning.placement.choice import grows_of, mapped_of, needs_of
from framework.planning.placement.tensor_mode import tensor_by_hand
from framework.planning.pool_hardware import gpus_of, gpus_on_line
from framework.values.device import Device
from framework.values.plan import LaunchPlan, Placement
from framework.values.pool import Freedom
from framework.values.reason import Failure, Reason, Refused

SHORTER, MOVED = "context_fitted", "layers_delegated"


def by_hand(launch: Launch, site: Site) -> LaunchPlan:
    """Manual mode: what the user says, on the pool's devices or his picks, and what it will take."""
    sent, gpus = _sent(launch, site)
    memory = _memory(launch, sent, site.hardware(gpus, launch))
    return _with_memory(sent, site, gpus, memory)


def _is_off_gpus(launch: Launch) -> bool:
    """Whether no GPU has anything to do; one that is only visible still costs some hundred MiB (04 §11.5)."""
    plan = launch.plan
    if plan.request.gpu_layers != 0 or plan.projector is not None:
        return False
    line = read_line(plan.argv, plan.env)
    helpers = (line.draft, line.drafter, line.projector)
    return not any(helpers) and not owns_placement(plan.request.extra_args, plan.env)


def delegated(
    launch: Launch, site: Site, freedom: Freedom | None, *, why: str | None, is_owned: bool
) -> LaunchPlan:
    """The engine's fit step decides. `why` it cannot be planned for; `is_owned`: the user's flags say where.

    Raises Refused (`does_not_fit`) where that comes to more than `freedom` allows; None allows everything.
    """
    sent, gpus = _sent(launch, site)
    hardware = site.hardware(gpus, launch)
    if why is not None:
        return _by_size(launch, sent, site, hardware, freedom, why)
    memory = _memory(launch, sent, hardware)
    codes = {reason.code for reason in memory.reasons}
    is_less = (freedom == "whole" and SHORTER in codes) or (freedom != "offloaded" and MOVED in codes)
    is_forbidden = MOVED in codes and launch.plan.request.pool.offload == "forbid" and not is_owned
    if freedom is not None and (memory.fit.fits is False or is_less or is_forbidden):
        reason = does_not_fit(memory.fit, memory.fit.remedies, site.devices, site.residents)
        raise Refused(Failure(reason))
    return _with_memory(sent, site, gpus, memory)


def _sent(launch: Launch, site: Site) -> tuple[LaunchPlan, tuple[Device, ...]]:
    """The launch on the devices that it may use, said on its line unless the user says so himself."""
    request = launch.plan.request
    line = read_line(launch.plan.argv, launch.plan.env)
    if names_devices(request.extra_args, launch.plan.env):
        named = line.devices
        if named is None:  # servers alone: the engine uses theirs beside all others
            remote = [device.name for device in site.devices if device.kind == "rpc"]
            named = (*remote, *(gpu.name for gpu in gpus_of(site.devices, request, site.unlisted)))
        return launch.plan, gpus_on_line(site.devices, named)
    if not site.is_known:
        return launch.plan, ()
    if request.memory_mode == "manual" and _is_off_gpus(launch):
        return directed(launch.plan, launch.facts, Place((), site.devices)), ()
    gpus = gpus_of(site.devices, request, site.unlisted)
    names = tuple(gpu.name for gpu in gpus)
    if request.memory_mode != "manual":
        return directed(launch.plan, launch.facts, Place(names, site.devices)), gpus
    is_tensor, types, notes = tensor_by_hand(launch.plan, line, len(gpus))
    place = Place(names, site.devices, is_tensor=is_tensor, cache_types=types)
    sent = directed(launch.plan, launch.facts, place)
    return replace(sent, reasons=(*sent.reasons, *notes)), gpus


def _memory(launch: Launch, sent: LaunchPlan, hardware: Hardware) -> LaunchMemory:
    line = read_line(sent.argv, sent.env)
    if launch.fault is not None:
        return unplanned(launch.fault)
    return plan_launch_memory(line, launch.model, hardware)


def _by_size(
    launch: Launch,
    sent: LaunchPlan,
    site: Site,
    hardware: Hardware,
    freedom: Freedom | None,
    why: str,
) -> LaunchPlan:
    """Sized by its files alone (04 §10.9)."""
    placed = place_by_size(launch.plan.file_bytes + launch.model.projector_bytes, hardware)
    is_moved = bool(hardware.gpus) and not placed.fits
    may_move = freedom in (None, "offloaded") and launch.plan.request.pool.offload == "allow"
    if is_moved and freedom is not None and not may_move:
        raise Refused(
            Failure(file_does_not_fit(launch.plan.file_bytes, hardware, site.devices, site.residents))
        )
    memory = unplanned(why)
    placement = Placement(
        devices=sent.placement.devices,
        child_names=sent.placement.child_names,
        needs_bytes=placed.needs_bytes,
        mapped_bytes=placed.mapped_bytes,
    )
    return replace(sent, placement=placement, fit=memory.fit, reasons=_told(sent, site, memory))


def _with_memory(sent: LaunchPlan, site: Site, gpus: Sequence[Device], memory: LaunchMemory) -> LaunchPlan:
    fit = memory.fit
    names = tuple(gpu.name for gpu in gpus if gpu.name in fit.total_bytes) or tuple(gpu.name for gpu in gpus)
    placement = Placement(
        devices=names,
        child_names=sent.placement.child_names or {name: name for name in names},
        gpu_layers=fit.gpu_layers,
        cpu_experts=fit.cpu_experts,
        needs_bytes=needs_of(fit),
        grows_bytes=grows_of(fit),
        mapped_bytes=mapped_of(fit),
    )
    return replace(sent, placement=placement, fit=fit, reasons=_told(sent, site, memory))


def _told(sent: LaunchPlan, site: Site, memory: LaunchMemory) -> tuple[Reason, ...]:
    return (*sent.reasons, *site.unlisted, *memory.reasons)
