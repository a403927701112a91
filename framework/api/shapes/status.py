"""What runs now as JSON: the manifest in force, pools and their devices, models (13 §5)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from framework.api.answers import DevicesAnswer
from framework.api.shapes.basic import at, optional_at
from framework.api.shapes.instance import instance_json
from framework.reconcile.current import CurrentManifest
from framework.values.device import Device
from framework.values.instance import InstanceView, ModelView, QueueView
from framework.values.plan import FitPlan
from framework.values.problem import as_json as problem_json
from framework.values.request import ModelSource, PoolLimits


def status_json(
    version: str,
    since: datetime,
    current: CurrentManifest,
    models: Iterable[ModelView],
    devices: DevicesAnswer,
) -> dict[str, Any]:
    """Everything. `devices` are those last listed; no process is started to fill a status."""
    views = tuple(models)
    return {
        "version": version,
        "since_at": at(since),
        "manifest": _manifest_json(current),
        "devices_sampled_at": optional_at(devices.sampled_at),
        "pools": [_pool_json(pool, views, devices.devices) for pool in current.manifest.pools.values()],
        "models": [model_json(view) for view in views],
    }


def model_json(view: ModelView) -> dict[str, Any]:
    """One model with its instances, the serving one first."""
    request = view.request
    return {
        "name": request.id,
        "display_name": request.live.display_name,
        "aliases": list(request.live.aliases),
        "source": source_text(request.source),
        "pool": request.pool.name,
        "load": request.live.load,
        "unload_after_s": request.live.idle_after_s,
        "replicas": request.live.replicas,
        "state": view.state.value,
        "replacing": view.replacing,
        "removed": view.removed,
        "stopped_by_command": view.stopped_by_command,
        "queue": queue_json(view.queue),
        "instances": [instance_json(instance) for instance in view.instances],
    }


def queue_json(queue: QueueView) -> dict[str, Any]:
    """Requests that wait for the model."""
    return {
        "waiting": queue.waiting,
        "limit": queue.limit,
        "oldest_wait_s": queue.oldest_wait_s,
        "eta_s": queue.eta_s,
    }


def source_text(source: ModelSource) -> str:
    """A source in the form the manifest takes."""
    if source.path is not None:
        return str(source.path)
    if source.file is not None:
        return f"hf:{source.repo}/{source.file}"
    return f"hf:{source.repo}:{source.variant}" if source.variant else f"hf:{source.repo}"


def _manifest_json(current: CurrentManifest) -> dict[str, Any]:
    """`error` is about a text that was refused; a text that was taken may have `warnings` all the same."""
    problems = current.problems
    errors = [problem_json(problem) for problem in problems if problem.severity == "error"]
    return {
        "path": str(current.manifest.path),
        "sha256": current.manifest.sha256,
        "loaded_at": at(current.loaded_at),
        "error": {"problems": errors} if errors else None,
        "warnings": [problem_json(problem) for problem in problems if problem.severity == "warning"],
        "notices": list(current.server_notices),
    }


def _pool_json(pool: PoolLimits, views: tuple[ModelView, ...], devices: tuple[Device, ...]) -> dict[str, Any]:
    residents = [
        instance
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
                "planned_bytes": _planned_bytes(residents, device.name),
                "measured_bytes": None,
            }
            for device in devices
            if device.pool == pool.name
        ],
        "foreign_bytes": None,
        "residents": [
            {
                "model": instance.model,
                "replica": instance.replica,
                "planned_bytes": _planned_bytes([instance]),
                "idle_s": instance.idle_s,
                "pinned": False,
                "next_to_evict": False,
            }
            for instance in residents
        ],
    }


def _planned_bytes(residents: Iterable[InstanceView], device: str | None = None) -> int | None:
    """What they hold from their start, on one device or on all; null where that was not planned for each."""
    fits = [instance.plan.fit if instance.plan is not None else FitPlan() for instance in residents]
    if any(fit.context is None for fit in fits):
        return None
    return sum(fit.needed_bytes(name) for fit in fits for name in fit.total_bytes if device in (None, name))
