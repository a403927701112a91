"""What runs now as JSON: the manifest in force, pools and their devices, models (13 §5)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from framework.api.shapes.basic import at, optional_at
from framework.api.shapes.instance import instance_json
from framework.api.shapes.pools import pool_json
from framework.api.shapes.speculation import yield_json
from framework.reconcile.current import CurrentManifest
from framework.values.instance import ModelView, QueueView
from framework.values.pool import PoolView
from framework.values.problem import as_json as problem_json
from framework.values.request import ModelSource


def status_json(
    version: str,
    since: datetime,
    current: CurrentManifest,
    models: Iterable[ModelView],
    pools: Iterable[PoolView],
    devices_sampled_at: datetime | None,
) -> dict[str, Any]:
    """Everything. Devices are those last listed; no process is started to fill a status."""
    return {
        "version": version,
        "since_at": at(since),
        "manifest": _manifest_json(current),
        "devices_sampled_at": optional_at(devices_sampled_at),
        "pools": [pool_json(pool) for pool in pools],
        "models": [model_json(view) for view in models],
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
        "instances": [instance_json(instance, view.speeds) for instance in view.instances],
        "speculation_yield": yield_json(view.spec_yield),
    }


def queue_json(queue: QueueView) -> dict[str, Any]:
    """Requests that wait for the model."""
    return {
        "waiting": queue.waiting,
        "limit": queue.limit,
        "oldest_wait_s": queue.oldest_wait_s,
        "eta_s": queue.eta_s,
        "position": queue.position,
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
