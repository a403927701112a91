"""Launches whose placement is the engine's or the user's: follow what will come of it (04 §10.9, §11). Pure.

Called by planning.launch_place. The line keeps the engine's fit step, or the layers that manual mode names;
what it says of devices are those of the pool. Manual mode is never refused for memory. No launch goes to a
server that serves somebody else.
"""

from __future__ import annotations

from dataclasses import replace

from framework.engines.visibility import remote_names
from framework.planning.launch import Place, directed
from framework.planning.launch_memory import LaunchMemory, plan_launch_memory, unplanned
from framework.planning.launch_site import Launch, Site
from framework.planning.line_settings import line_of, names_devices, owns_placement
from framework.planning.memory.settings import Hardware
from framework.planning.memory_reasons import does_not_fit, file_does_not_fit
from framework.planning.placement.by_size import place_by_size
from framework.planning.placement.choice import at_least_something, grows_of, mapped_of, needs_of
from framework.planning.placement.servers import refuse_taken
from framework.planning.placement.tensor_mode import tensor_by_hand
from framework.planning.pool_hardware import gpus_of, gpus_on_line
from framework.values.device import Device
from framework.values.plan import LaunchPlan, Placement
from framework.values.pool import Freedom
from framework.values.reason import Failure, Reason, Refused

SHORTER, MOVED = "context_fitted", "layers_delegated"


def by_hand(launch: Launch, site: Site, freedom: Freedom | None) -> LaunchPlan:
    """Manual mode: what the user says, on the pool's devices or his picks, and what it will take.

    Raises Refused (`does_not_fit`) only where a server is in use; with `freedom` None not even there.
    """
    sent, gpus = _sent(launch, site, freedom)
    memory = _memory(launch, sent, site.hardware(gpus, launch))
    return _with_memory(sent, site, memory)


def _is_off_gpus(launch: Launch) -> bool:
    """Whether no GPU has anything to do; one that is only visible still costs some hundred MiB (04 §11.5)."""
    plan = launch.plan
    if plan.request.gpu_layers != 0 or plan.projector is not None:
        return False
    line = line_of(plan)
    helpers = (line.draft, line.projector)
    return not any(helpers) and not owns_placement(plan.request.extra_args, plan.env)


def delegated(
    launch: Launch, site: Site, freedom: Freedom | None, *, why: str | None, is_owned: bool
) -> LaunchPlan:
    """The engine's fit step decides. `why` it cannot be planned for; `is_owned`: the user's flags say where.

    Raises Refused (`does_not_fit`) where that comes to more than `freedom` allows, or a server is in use;
    None allows everything.
    """
    sent, gpus = _sent(launch, site, freedom)
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
    return _with_memory(sent, site, memory)


def _sent(launch: Launch, site: Site, freedom: Freedom | None) -> tuple[LaunchPlan, tuple[Device, ...]]:
    """The launch on the devices that it may use, said on its line unless the user says so himself; and which
    of them its memory goes to."""
    request = launch.plan.request
    if names_devices(request.extra_args, launch.plan.env):
        sent, gpus = _as_written(launch, site)
    elif not site.is_known:
        return launch.plan, ()
    elif request.memory_mode == "manual":
        sent, gpus = _by_hand(launch, site)
    else:
        gpus = site.untaken(site.together(gpus_of(site.devices, request, site.unlisted), launch))
        names = tuple(gpu.name for gpu in gpus)
        sent = directed(launch.plan, launch.facts, Place(names, site.devices))
    if freedom is not None:
        used = [device for device in site.devices if device.name in sent.placement.devices]
        refuse_taken(used, site.devices, site.residents)
    return sent, gpus


def _as_written(launch: Launch, site: Site) -> tuple[LaunchPlan, tuple[Device, ...]]:
    """The line as its user wrote it. The engine connects to all servers on it, whichever devices it names,
    and counts theirs in the order of the line."""
    request = launch.plan.request
    line = line_of(launch.plan)
    calls = remote_names(line.servers, site.devices)
    outside = {child: name for name, child in calls.items()}
    if line.devices is None:  # servers alone: the engine uses theirs beside all others
        local = (gpu.name for gpu in gpus_of(site.devices, request, site.unlisted) if not gpu.is_exclusive)
        names = (*calls, *local)
    else:
        names = tuple(outside.get(name, name) for name in line.devices)
    gpus = gpus_on_line(site.devices, names)
    opened = dict.fromkeys((*calls, *(gpu.name for gpu in gpus)))
    children = {name: calls.get(name, name) for name in opened}
    placement = replace(launch.plan.placement, devices=tuple(children), child_names=children)
    return replace(launch.plan, placement=placement), gpus


def _by_hand(launch: Launch, site: Site) -> tuple[LaunchPlan, tuple[Device, ...]]:
    """All devices of the pool, or all that were picked; none where there is nothing for a GPU to do."""
    if _is_off_gpus(launch):
        return directed(launch.plan, launch.facts, Place((), site.devices)), ()
    gpus = site.together(gpus_of(site.devices, launch.plan.request, site.unlisted), launch)
    line = line_of(launch.plan)
    is_tensor, types, notes = tensor_by_hand(
        launch.plan, line, len(gpus), withheld=launch.facts.withheld.tensor
    )
    names = tuple(gpu.name for gpu in gpus)
    place = Place(names, site.devices, is_tensor=is_tensor, cache_types=types)
    sent = directed(launch.plan, launch.facts, place)
    return replace(sent, reasons=(*sent.reasons, *notes)), gpus


def _memory(launch: Launch, sent: LaunchPlan, hardware: Hardware) -> LaunchMemory:
    line = line_of(sent)
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
    placed = place_by_size(launch.file_bytes, hardware)
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
        needs_bytes=at_least_something(placed.needs_bytes, sent.placement.devices),
        mapped_bytes=placed.mapped_bytes,
    )
    return replace(sent, placement=placement, fit=memory.fit, reasons=_told(sent, site, memory))


def _with_memory(sent: LaunchPlan, site: Site, memory: LaunchMemory) -> LaunchPlan:
    fit = memory.fit
    placement = Placement(
        devices=sent.placement.devices,
        child_names=sent.placement.child_names,
        gpu_layers=fit.gpu_layers,
        cpu_experts=fit.cpu_experts,
        needs_bytes=needs_of(fit, sent.placement.devices),
        grows_bytes=grows_of(fit),
        mapped_bytes=mapped_of(fit),
    )
    return replace(sent, placement=placement, fit=fit, reasons=_told(sent, site, memory))


def _told(sent: LaunchPlan, site: Site, memory: LaunchMemory) -> tuple[Reason, ...]:
    return (*sent.reasons, *site.unlisted, *memory.reasons)
