"""Why a request gets no lease, in words for the client (08 §2.4). Pure; raised by runtime.supervisor."""

from __future__ import annotations

from framework.runtime.lease import LeaseRefused
from framework.values.instance import LoadProgress, State
from framework.values.reason import Reason

# 08 §2.4: `Retry-After` when nothing is known, and its least value.
RETRY_UNKNOWN_S = 5.0
RETRY_LEAST_S = 1.0
# Refusals that the end of another model, or of a foreign program, may lift.
OF_MEMORY = frozenset({"does_not_fit", "capacity_pinned"})


def retry_after_s(eta_s: float | None) -> float:
    """What to tell a client to wait, from the rest of a load where that is known."""
    return RETRY_UNKNOWN_S if eta_s is None else max(RETRY_LEAST_S, eta_s)


def shutting_down() -> LeaseRefused:
    """The manager ends."""
    return LeaseRefused("shutting_down", "The server is shutting down.", retry_after_s=RETRY_UNKNOWN_S)


def removed(model: str) -> LeaseRefused:
    """The model was taken out of the manifest while the request waited."""
    message = f"Model {model!r} is no longer in the manifest."
    return LeaseRefused("model_unloaded", message, retry_after_s=RETRY_UNKNOWN_S)


def not_loaded(model: str, *, by_command: bool) -> LeaseRefused:
    """No request may load the model."""
    why = "it was unloaded by command" if by_command else 'its manifest says load = "manual"'
    return LeaseRefused("model_not_loaded", f"Model {model!r} is not loaded: {why}. `paddock load` loads it.")


def load_failed(model: str, reason: Reason | None) -> LeaseRefused:
    """The start failed, and would fail again; for want of memory, it may not later."""
    if reason is not None and reason.code in OF_MEMORY:
        return no_memory(model, reason)
    text = f"{reason.message} {reason.remedy}".strip() if reason else "See `paddock status`."
    return LeaseRefused("model_load_failed", f"Model {model!r} failed to load: {text}", reason=reason)


def no_memory(model: str, reason: Reason) -> LeaseRefused:
    """There is no room for it, and nobody who would make some."""
    return LeaseRefused(
        "no_memory",
        f"Model {model!r} cannot be loaded now: {reason.message} {reason.remedy}".strip(),
        retry_after_s=RETRY_UNKNOWN_S,
        reason=reason,
    )


def restarting(
    model: str, rest_s: float, reason: Reason | None, *, failed_in: State | None = None
) -> LeaseRefused:
    """It waits before the next try: after a crash, or after a start that failed in the state `failed_in`."""
    why = f": {reason.message}" if reason else "."
    message = f"Model {model!r} crashed and is started again in {rest_s:.0f} s."
    if failed_in is State.FETCHING:
        message = f"The files of model {model!r} could not be fetched; next try in {rest_s:.0f} s{why}"
    elif failed_in is State.PLANNING:
        message = f"Model {model!r} could not be started yet; next try in {rest_s:.0f} s{why}"
    elif failed_in is not None:
        message = f"Model {model!r} failed to start and is started again in {rest_s:.0f} s{why}"
    return LeaseRefused(
        "instance_restarting",
        message,
        retry_after_s=retry_after_s(rest_s),
        reason=reason,
    )


def queue_full(model: str, waiting: int, limit: int, over_all: int, eta_s: float | None) -> LeaseRefused:
    """Too many requests wait already, for this model or over all of them."""
    return LeaseRefused(
        "queue_full",
        f"{waiting} requests wait for model {model!r} already (limit {limit}, {over_all} over all models).",
        retry_after_s=retry_after_s(eta_s),
    )


def loading_too_long(model: str, progress: LoadProgress | None, eta_s: float | None) -> LeaseRefused:
    """The wait is over and the model is still loading; the load goes on."""
    return LeaseRefused(
        "model_loading",
        f"Model {model!r} is still loading.",
        retry_after_s=retry_after_s(eta_s),
        progress=progress,
    )
