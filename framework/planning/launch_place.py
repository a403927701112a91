"""Give a launch its place: devices, context, slots, layers, and what it takes of each device (04 §8-§11).

Pure. Called by runtime.planner for every start, and for the plans that are shown. Where our own plan is known
to be exact, the command line says everything and nothing is left to the engine's fit step. Where it is not
(flags of the user's own that say where things go, tensors placed by hand, a header that says too little), and
in manual mode, planning.launch_delegated follows what the engine will do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from framework.engines.args import CONTEXT_FLAGS
from framework.planning.launch import Place, directed, undrafted
from framework.planning.launch_delegated import by_hand, delegated
from framework.planning.launch_memory import extras_of, notes_on, why_unplanned
from framework.planning.launch_site import Launch, Site
from framework.planning.line_settings import LineSettings, line_of, owns_placement, owns_slots
from framework.planning.memory.remedies import remedies
from framework.planning.memory.settings import Hardware
from framework.planning.memory_reasons import (
    context_fitted,
    does_not_fit,
    layers_delegated,
    model_exceeds_memory,
    slots_reduced,
)
from framework.planning.placement.choice import Choice
from framework.planning.placement.displacement import draft_displaces_layers, gives_way, is_displaced
from framework.planning.placement.prompt_cache import limited
from framework.planning.placement.room import holdings
from framework.planning.placement.search import Asked, Search
from framework.planning.placement.tensor_mode import TensorMode, tensor_mode
from framework.planning.placement.unified import check_unified
from framework.planning.pool_hardware import gpus_of, is_host_pool
from framework.values.plan import LaunchPlan, Remedy
from framework.values.pool import Freedom
from framework.values.reason import Failure, Reason, Refused

# Sets of residents that a decision thinks of as gone.
MOST_SEARCHES = 32


def place_launch(launch: Launch, site: Site, freedom: Freedom) -> LaunchPlan:
    """The launch at its place within a freedom.

    Raises Refused: `does_not_fit`, or for devices and engines that do not go together.
    """
    return _placed(launch, site, freedom)


def shown_launch(launch: Launch, site: Site) -> LaunchPlan:
    """The launch at the best place there is; one that fits nowhere is shown with what it lacks."""
    return _placed(launch, site, None)


def _placed(launch: Launch, site: Site, freedom: Freedom | None) -> LaunchPlan:
    request = launch.plan.request
    line = line_of(launch.plan)
    if request.memory_mode == "manual":
        return by_hand(launch, site, freedom)
    why = launch.fault or why_unplanned(line, launch.model)
    is_owned = owns_placement(request.extra_args, launch.plan.env)
    if is_owned or why or not (site.is_known or is_host_pool(request.pool)):
        return delegated(launch, site, freedom, why=why, is_owned=is_owned)
    return _computed(launch, site, freedom, line)


@dataclass(frozen=True)
class _Tried:
    """The best place of a launch, with drafting or without."""

    launch: Launch
    mode: TensorMode
    search: Search
    choice: Choice | None


def _computed(launch: Launch, site: Site, freedom: Freedom | None, line: LineSettings) -> LaunchPlan:
    request = launch.plan.request
    gpus = site.together(gpus_of(site.devices, request, site.unlisted), launch)
    hardware = site.hardware(gpus, launch)
    short = check_unified(launch.file_bytes, gpus, site.devices, site.residents)
    if short is not None and freedom is not None:
        raise Refused(Failure(short))
    most: Freedom = "offloaded" if request.pool.offload == "allow" else "shrunk"
    within = most if freedom is None or (freedom, most) == ("offloaded", "shrunk") else freedom
    tried = _tried(launch, line, hardware, within)
    if line.draft is not None and gpus and within == most:
        tried = _weighed(tried, hardware, within)
    if site.are_all_taken(gpus):
        tried = replace(tried, choice=None)  # a server that serves another is waited for (MN-08)
    if tried.choice is None:
        return _without_place(tried, site, freedom, is_last=within == most)
    return _with_place(tried, tried.choice, site, hardware, short)


def _tried(launch: Launch, line: LineSettings, hardware: Hardware, within: Freedom) -> _Tried:
    withheld = launch.facts.withheld.tensor
    mode = tensor_mode(launch.plan, line, launch.model, hardware, _asked(launch, line), withheld=withheld)
    search = _search(launch, mode.line, hardware)
    return _Tried(launch, mode, search, mode.choice(within) if mode.is_on else search.find(within))


def _weighed(tried: _Tried, hardware: Hardware, within: Freedom) -> _Tried:
    """Without drafting, where that would push layers into host memory and nobody insists on it."""
    launch, choice = tried.launch, tried.choice
    if choice is not None and choice.is_whole:
        return tried
    bare = replace(tried.mode.line, draft=None, cache=replace(tried.mode.line.cache, drafted=0))
    plain = _search(launch, bare, hardware).find(within)
    if plain is None or not is_displaced(choice, plain):
        return tried
    is_kept = not gives_way(launch.plan)
    why = draft_displaces_layers(choice, plain, is_kept=is_kept)
    if is_kept:
        spec = replace(launch.plan.spec, notes=(*launch.plan.spec.notes, why))
        return replace(tried, launch=replace(launch, plan=replace(launch.plan, spec=spec)))
    plan, facts = undrafted(launch.plan, launch.facts, why)
    other = replace(
        launch, plan=plan, facts=facts, model=replace(launch.model, drafter=None, drafter_bytes=0)
    )
    return _tried(other, line_of(plan), hardware, within)


def _without_place(tried: _Tried, site: Site, freedom: Freedom | None, *, is_last: bool) -> LaunchPlan:
    """Refused, or shown with what it lacks where `freedom` is None."""
    best = tried.search.best_try()
    ways = _remedies(tried.search, best, tried.launch, tried.mode.line) if is_last else ()
    reason = does_not_fit(best.fit, ways, site.devices, site.residents)
    if freedom is not None:
        raise Refused(Failure(reason))
    best = replace(best, fit=replace(best.fit, remedies=ways))
    return _finished(tried.launch, site, best, tried.mode, (reason,))


def _with_place(
    tried: _Tried, choice: Choice, site: Site, hardware: Hardware, short: Reason | None
) -> LaunchPlan:
    launch, mode, search = tried.launch, tried.mode, tried.search
    choice, limit = limited(choice, mode.line, launch.plan, hardware, holdings(site.residents))
    told = (*_differences(choice, search, launch, hardware), *limit, *filter(None, (short,)))
    if not choice.is_whole:
        ways = _remedies(search, choice, launch, mode.line)
        choice = replace(choice, fit=replace(choice.fit, remedies=ways))
    return _finished(launch, site, choice, mode, told)


def _search(launch: Launch, line: LineSettings, hardware: Hardware) -> Search:
    """The search on this hardware, with what it has tried already."""
    key = (line.cache, line.draft, repr(hardware))
    found = launch.searches.get(key)
    if found is None:
        if len(launch.searches) >= MOST_SEARCHES:
            launch.searches.clear()
        found = launch.searches[key] = Search(line, launch.model, hardware, _asked(launch, line))
    return found


def _asked(launch: Launch, line: LineSettings) -> Asked:
    request, env = launch.plan.request, launch.plan.env
    says = bool(set(CONTEXT_FLAGS) & set(request.extra_args)) or "LLAMA_ARG_CTX_SIZE" in env
    return Asked(
        context=line.cache.n_ctx or launch.model.shape.context_length or 0,
        is_automatic=launch.plan.context == 0 and not says,
        slots=line.cache.slots,
        may_use_fewer_slots=not owns_slots(request.extra_args, env),
    )


def _differences(choice: Choice, search: Search, launch: Launch, hardware: Hardware) -> tuple[Reason, ...]:
    """Why the place is not what was asked for, and what is worth knowing of it."""
    asked = search.asked
    found = [
        context_fitted(asked.context, choice.context) if choice.context < asked.context else None,
        slots_reduced(asked.slots, choice.slots) if choice.slots < asked.slots else None,
        None if choice.is_whole else layers_delegated(choice.fit, choice.all_layers),
        model_exceeds_memory(choice.fit, hardware),
    ]
    return (*(reason for reason in found if reason is not None), *notes_on(choice.fit))


def _remedies(search: Search, choice: Choice, launch: Launch, line: LineSettings) -> tuple[Remedy, ...]:
    """What would help, on the devices of a try. What planning does by itself, moving layers, is no advice."""
    model = launch.model
    settings = replace(line.cache, n_ctx=choice.context, slots=choice.slots)
    gpus = tuple(gpu for gpu in search.hardware.gpus if not choice.devices or gpu.name in choice.devices)
    return remedies(
        model.shape,
        model.tensors,
        settings,
        replace(search.hardware, gpus=gpus),
        extras=extras_of(line, model),
        variants=model.variants,
        moves=False,
    )


def _finished(
    launch: Launch, site: Site, choice: Choice, mode: TensorMode, reasons: tuple[Reason, ...]
) -> LaunchPlan:
    plan = directed(
        replace(launch.plan, placement=choice.placement),
        launch.facts,
        Place(
            devices=choice.devices,
            listed=site.devices,
            layers=choice.gpu_layers,
            experts=choice.cpu_experts,
            shares=choice.shares,
            is_tensor=choice.split == "tensor",
            context=choice.context,
            slots=choice.slots,
            cache_types=mode.cache_types,
            cache_ram_mib=choice.cache_ram_mib,
        ),
    )
    return replace(plan, fit=choice.fit, reasons=(*plan.reasons, *site.unlisted, *mode.reasons, *reasons))
