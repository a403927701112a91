"""What runs now as JSON: pools, models, instances, slots, speculation (13 §5)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from framework.api.shapes.answers import problem_json
from framework.api.shapes.basic import at, optional_reason_json, plain, reason_json
from framework.api.shapes.plan import asked_speculation, granted_cache_json, instance_plan_json
from framework.reconcile.current import CurrentManifest
from framework.values.device import Device
from framework.values.instance import InstanceView, LoadProgress, ModelView, QueueView, Slot, State
from framework.values.plan import LaunchResult
from framework.values.reason import Reason
from framework.values.request import ModelSource, PoolLimits

# 07 §3.9: the differences at start that count as drift of a running instance.
DRIFT_CODES = frozenset({"cpu_fallback", "context_lowered"})
SERVING = frozenset({State.READY, State.DRAINING, State.STOPPING})


def status_json(
    version: str,
    since: datetime,
    current: CurrentManifest,
    models: Iterable[ModelView],
    devices: Iterable[Device] = (),
) -> dict[str, Any]:
    """Everything. `devices` are those last listed; no process is started to fill a status."""
    views, known = tuple(models), tuple(devices)
    return {
        "version": version,
        "since_at": at(since),
        "manifest": _manifest_json(current),
        "pools": [_pool_json(pool, views, known) for pool in current.manifest.pools.values()],
        "models": [model_json(view) for view in views],
    }


def model_json(view: ModelView) -> dict[str, Any]:
    """One model with its instances, the serving one first."""
    request = view.request
    return {
        "name": request.id,
        "aliases": list(request.live.aliases),
        "source": source_text(request.source),
        "load": request.live.load,
        "state": view.state.value,
        "replacing": view.replacing,
        "queue": queue_json(view.queue),
        "instances": [instance_json(instance) for instance in view.instances],
    }


def instance_json(view: InstanceView) -> dict[str, Any]:
    """One instance. Asked and granted stand in `plan`, what the process turned out to do in `running`."""
    degradations = view.result.degradations if view.result is not None else ()
    return {
        "replica": view.replica,
        "generation": view.generation,
        "engine": view.request.engine.name,
        "state": view.state.value,
        "pid": view.pid,
        "port": view.port,
        "since_at": at(view.since),
        "restarts": view.restarts,
        "progress": progress_json(view.progress),
        "drift": [reason_json(reason) for reason in degradations if reason.code in DRIFT_CODES],
        "degradations": [reason_json(reason) for reason in degradations if reason.code not in DRIFT_CODES],
        "inflight": view.inflight,
        "plan": None if view.plan is None else instance_plan_json(view.plan),
        "running": _running_json(view),
        "slots": [slot_json(slot) for slot in view.slots],
        "speculation": speculation_json(view),
        "tokens_per_s": {"prompt": view.prompt_tokens_per_s, "generation": view.generation_tokens_per_s},
        "last_error": optional_reason_json(view.last_error),
    }


def queue_json(queue: QueueView) -> dict[str, Any]:
    """Requests that wait for the model."""
    return {
        "waiting": queue.waiting,
        "limit": queue.limit,
        "oldest_wait_s": queue.oldest_wait_s,
        "eta_s": queue.eta_s,
    }


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


def speculation_json(view: InstanceView) -> dict[str, Any]:
    """Asked, resolved and running speculation; what was not measured is null (05 §1)."""
    plan, result = view.plan, _live_result(view)
    notes: tuple[Reason, ...] = plan.spec.notes if plan is not None else ()
    return {
        "asked": view.request.spec.mode if plan is None else asked_speculation(plan),
        "resolved": None if plan is None else plan.spec.resolved,
        "running": None if result is None else result.speculation,
        "chained": False,
        "depth": None,
        "depth_source": None,
        "drafter": None,
        "reason": None if plan is None else optional_reason_json(plan.spec.reason),
        "notes": [reason_json(note) for note in notes],
        "drafted": None,
        "accepted": None,
        "acceptance": None,
        "drafted_by_position": [],
        "accepted_by_position": [],
        "speedup": None,
        "baseline_tokens_per_s": None,
    }


def source_text(source: ModelSource) -> str:
    """A source in the form the manifest takes."""
    if source.path is not None:
        return str(source.path)
    if source.file is not None:
        return f"hf:{source.repo}/{source.file}"
    return f"hf:{source.repo}:{source.variant}" if source.variant else f"hf:{source.repo}"


def _manifest_json(current: CurrentManifest) -> dict[str, Any]:
    problems = [problem_json(problem) for problem in current.problems]
    return {
        "path": str(current.manifest.path),
        "sha256": current.manifest.sha256,
        "loaded_at": at(current.loaded_at),
        "error": {"problems": problems} if problems else None,
    }


def _pool_json(pool: PoolLimits, views: tuple[ModelView, ...], devices: tuple[Device, ...]) -> dict[str, Any]:
    residents = [
        {
            "model": instance.model,
            "replica": instance.replica,
            "planned_bytes": None,
            "idle_s": None,
            "pinned": False,
            "next_to_evict": False,
        }
        for view in views
        for instance in view.instances
        if instance.pid is not None and instance.request.pool.name == pool.name
    ]
    return {
        "name": pool.name,
        "devices": [
            {
                "name": device.name,
                "total_bytes": device.total_bytes,
                "free_bytes": device.free_bytes,
                "planned_bytes": None,
                "measured_bytes": None,
            }
            for device in devices
            if device.pool == pool.name
        ],
        "foreign_bytes": None,
        "residents": residents,
    }


def _live_result(view: InstanceView) -> LaunchResult | None:
    """What the process turned out to do; it outlasts the process (07 §5.7), which then does nothing."""
    alive = view.state in SERVING and view.result is not None and view.result.outcome == "ready"
    return view.result if alive else None


def _running_json(view: InstanceView) -> dict[str, Any] | None:
    result = _live_result(view)
    if result is None:
        return None
    return {
        "context": result.context,
        "slots": result.slots,
        "kv_cache": granted_cache_json(view.plan.cache_types if view.plan else view.request.cache_type),
        "speculation": result.speculation,
        "offloaded": result.offload,
    }
