"""One instance as JSON: what was granted, what runs, slots, speculation, how it started and ended (13 §5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from framework.api.shapes.basic import at, optional_reason_json, plain, reason_json
from framework.api.shapes.plan import granted_cache_json, instance_plan_json
from framework.api.shapes.speculation import speculation_json
from framework.engines.redaction import redact_argv
from framework.values.instance import ExitInfo, InstanceView, LoadProgress, Slot
from framework.values.plan import Attempt, LaunchPlan, MemoryLine
from framework.values.spec_yield import SpeedAt

# 07 §3.9: the differences that count as drift of a running instance.
DRIFT_CODES = frozenset({"cpu_fallback", "context_lowered", "drafter_available", "memory_over_plan"})


def instance_json(view: InstanceView, speeds: Iterable[SpeedAt] = ()) -> dict[str, Any]:
    """One instance. Asked and granted stand in `plan`, what the process turned out to do in `running`.

    `speeds` are those of its model.
    """
    result = view.result
    degradations = result.degradations if result is not None else ()
    failure = result.failure if result is not None else None
    return {
        "replica": view.replica,
        "generation": view.generation,
        "engine": view.request.engine.name,
        "state": view.state.value,
        "pid": view.pid,
        "port": view.port,
        "since_at": at(view.since),
        "restarts": view.restarts,
        "retry_in_s": view.retry_in_s,
        "progress": progress_json(view.progress),
        "drift": [reason_json(reason) for reason in degradations if reason.code in DRIFT_CODES],
        "degradations": [reason_json(reason) for reason in degradations if reason.code not in DRIFT_CODES],
        "inflight": view.inflight,
        "plan": None if view.plan is None else instance_plan_json(view.plan),
        "binary": None if view.plan is None else _binary_json(view.plan),
        "running": _running_json(view),
        "load_s": None if result is None else result.load_s,
        "attempts": [attempt_json(attempt) for attempt in result.attempts] if result is not None else [],
        "slots": [slot_json(slot) for slot in view.slots],
        "speculation": speculation_json(view, speeds),
        "tokens_per_s": {"prompt": view.prompt_tokens_per_s, "generation": view.generation_tokens_per_s},
        "last_error": optional_reason_json(view.last_error),
        "failure_detail": "" if failure is None else failure.detail,
        "last_exit": exit_json(view.last_exit),
    }


def started_argv(view: InstanceView) -> tuple[str, ...] | None:
    """The redacted line that the process was started with, None while no start has succeeded.

    It differs from the plan's where the recovery ladder dropped a section (06 §12).
    """
    result = view.result
    if result is None or result.outcome != "ready" or not result.attempts:
        return None
    return redact_argv(result.attempts[-1].argv)


def progress_json(progress: LoadProgress | None) -> dict[str, Any] | None:
    """How far a load has come; null when nothing loads."""
    if progress is None:
        return None
    return {
        "phase": progress.phase,
        "file": progress.file,
        "loaded_bytes": progress.loaded_bytes,
        "total_bytes": progress.total_bytes,
        "fraction": progress.fraction,
        "eta_s": progress.eta_s,
    }


def slot_json(slot: Slot) -> dict[str, Any]:
    """One slot as last sampled."""
    return {
        "id": slot.id,
        "state": slot.state,
        "context_tokens": slot.context_tokens,
        "context_limit": slot.context_limit,
        "prompt_tokens": slot.prompt_tokens,
        "prompt_done": slot.prompt_done,
        "generated": slot.generated,
        "tokens_per_s": slot.tokens_per_s,
        "draft": None if slot.draft is None else plain(slot.draft),
        "request_id": slot.request_id,
        "stale_s": slot.stale_s,
    }


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    """One try of the recovery ladder; `rung` is S, P or U (06 §12.2)."""
    return {
        "n": attempt.n,
        "rung": attempt.rung,
        "argv": list(redact_argv(attempt.argv)),
        "outcome": attempt.outcome,
        "exit_code": attempt.exit_code,
        "duration_s": attempt.seconds,
        "log": str(attempt.log),
    }


def exit_json(info: ExitInfo | None) -> dict[str, Any] | None:
    """How the last process ended, null when none has. `code` is negative for a signal."""
    if info is None:
        return None
    return {"code": info.code, "hard": info.hard, "planned": info.planned, "ready_s": info.seconds_ready}


def _running_json(view: InstanceView) -> dict[str, Any] | None:
    result = view.running
    if result is None:
        return None
    return {
        "argv": list(started_argv(view) or ()),
        "context": result.context,
        "slots": result.slots,
        "kv_cache": granted_cache_json(view.plan.cache_types if view.plan else view.request.cache_type),
        "speculation": result.speculation,
        "offloaded": result.offload,
        "buffers": [_buffer_json(line) for line in result.buffers],
        "held_bytes": dict(result.held_bytes),
    }


def _buffer_json(line: MemoryLine) -> dict[str, Any]:
    """Memory that the engine says it allocated, or mapped from a file."""
    return {"device": line.device, "label": line.label, "bytes": line.bytes, "mapped": line.mapped}


def _binary_json(plan: LaunchPlan) -> dict[str, Any]:
    """The engine program that was planned with; `/engines` tells what is found now."""
    return {"path": str(plan.engine.entry), "origin": plan.engine.origin, "version": plan.caps.version}
