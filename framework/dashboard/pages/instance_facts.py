"""Facts of one instance in the words of the pages: progress, context, speculation, reasons. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from framework.api.shapes.plan import asked_mode
from framework.api.told import told_of
from framework.dashboard.formats import share
from framework.values.instance import InstanceView, LoadProgress, ModelView, State
from framework.values.reason import Reason
from framework.values.request import ModelRequest
from framework.values.units_text import UNKNOWN, counted

PHASES: dict[str, str] = {"fetching": "fetching", "mapping": "reading", "ready": "read"}
# Steps of a progress bar that can be seen; finer ones would only be sent.
BAR_STEPS = 1000


@dataclass(frozen=True)
class ProgressFacts:
    """How far a load has come; `fraction` counts from 0 to 1 in steps that can be seen."""

    verb: str
    fraction: float
    loaded_bytes: int
    total_bytes: int
    eta_s: float | None


def serving_instance(view: ModelView) -> InstanceView | None:
    """The instance whose state the model shows (07 §2.3), else the first, None when there is none."""
    same = [instance for instance in view.instances if instance.state is view.state]
    return next(iter((*same, *view.instances)), None)


def progress_of(instance: InstanceView) -> ProgressFacts | None:
    """The progress of a load, None while nothing loads."""
    progress = instance.progress
    if progress is None or progress.phase == "ready":
        return None
    return ProgressFacts(
        verb=PHASES.get(progress.phase, progress.phase),
        fraction=round(_fraction(progress) * BAR_STEPS) / BAR_STEPS,
        loaded_bytes=progress.loaded_bytes,
        total_bytes=progress.total_bytes,
        eta_s=whole_s(progress.eta_s),
    )


def whole_s(seconds: float | None) -> float | None:
    """A time left in whole seconds: more often than that it is not sent."""
    return None if seconds is None else float(round(seconds))


def generation_rate(view: ModelView) -> float | None:
    """Generated tokens per second over all instances, None where no engine says so."""
    known = [i.generation_tokens_per_s for i in view.instances if i.generation_tokens_per_s is not None]
    return sum(known) if known else None


def context_and_slots(request: ModelRequest, instance: InstanceView | None) -> tuple[str, str]:
    """As they run, else as granted, else as asked."""
    result = instance.running if instance else None
    plan = instance.granted if instance else None
    if result is not None and result.context:
        return counted(result.context, "token"), counted(result.slots, "slot")
    context, slots = (
        (plan.fit.context or plan.context, plan.slots) if plan is not None else (request.n_ctx, request.slots)
    )
    return counted(context, "token") if context else "automatic", counted(slots, "slot")


def running_speculation(request: ModelRequest, instance: InstanceView | None) -> str:
    """Speculation as it runs, else as resolved, else as asked."""
    if instance is not None and instance.running is not None and instance.running.speculation:
        return instance.running.speculation
    if instance is not None and instance.granted is not None:
        return instance.granted.spec.resolved
    return asked_mode(request) or "user"


def model_flags(view: ModelView) -> tuple[str, ...]:
    """What the state alone does not say."""
    replicas = view.request.live.replicas
    ready = sum(instance.state is State.READY for instance in view.instances)
    flags = []
    if view.replacing:
        flags.append("a replacement is being started")
    if view.removed:
        flags.append("no longer in the manifest")
    if view.stopped_by_command and view.state is State.STOPPED:
        flags.append("unloaded by command; stays so until Load")
    if view.queue.position is not None:
        flags.append(f"number {view.queue.position} in the queue for memory of pool {view.request.pool.name}")
    if replicas > 1:
        flags.append(f"{ready} of {replicas} replicas ready")
    return tuple(flags)


def offload_text(offload: bool | None) -> str:
    """The engine's own word on where the model went."""
    return UNKNOWN if offload is None else "on GPU" if offload else "on CPU"


def reasons_of(instance: InstanceView, *more: Reason) -> tuple[Reason, ...]:
    """Every reason that belongs to an instance, and `more`, worst first, each once."""
    order = {"error": 0, "warning": 1, "info": 2}
    unique = {(reason.code, reason.message): reason for reason in (*told_of(instance), *more)}
    return tuple(sorted(unique.values(), key=lambda reason: order[reason.severity]))


def notes_of(instance: InstanceView) -> tuple[Reason, ...]:
    """The reasons of a running instance that an operator should read."""
    return tuple(reason for reason in reasons_of(instance) if reason.severity != "info")


def _fraction(progress: LoadProgress) -> float:
    if progress.total_bytes > 0:
        return share(progress.loaded_bytes, progress.total_bytes)
    return min(1.0, max(0.0, progress.fraction))
