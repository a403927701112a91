"""A plan as JSON: what was asked, what was granted, the command line, the reasons (13 §2)."""

from __future__ import annotations

from typing import Any

from framework.api.answers import PlanAnswer, RefusedInstance
from framework.api.shapes.basic import device_json, optional_reason_json, reason_json
from framework.api.shapes.memory import fit_json
from framework.engines.redaction import redact_argv, redact_environment
from framework.engines.spec_args import owns_speculation
from framework.values.device import HOST_NAME
from framework.values.plan import LaunchPlan, Placement, SpecDecision
from framework.values.request import ModelRequest

AUTO = "auto"
# What llama-server keeps its cache in when no type is passed (15 §2).
ENGINE_CACHE_TYPE = "f16"
# What a pool calls host memory (01 §1); as a device it is HOST_NAME.
HOST_POOL_WORD = "cpu"


def plan_json(answer: PlanAnswer) -> dict[str, Any]:
    """The whole plan of a manifest."""
    return {
        "manifest": {"path": str(answer.path), "sha256": answer.sha256},
        "inventory": [device_json(device) for device in answer.devices],
        "instances": [_planned_json(instance) for instance in answer.instances],
        "reasons": [reason_json(reason) for reason in answer.reasons],
    }


def instance_plan_json(plan: LaunchPlan) -> dict[str, Any]:
    """One planned instance. The port and the key are not part of a plan, so `argv` shows `{port}`."""
    return {
        "model": plan.request.id,
        "replica": plan.replica,
        "engine": plan.request.engine.name,
        "fingerprint": plan.fingerprint,
        "argv": list(redact_argv(plan.argv)),
        "environment": dict(redact_environment(plan.env)),
        "asked": _asked_json(plan.request),
        "granted": granted_json(plan),
        "fit": fit_json(plan.fit),
        "speculation": _decision_json(plan.spec),
        "reasons": [reason_json(reason) for reason in (*plan.reasons, *plan.spec.notes)],
    }


def refused_plan_json(refused: RefusedInstance) -> dict[str, Any]:
    """An instance that was refused: no command line, nothing granted, and the reason."""
    request = refused.request
    return {
        "model": request.id,
        "replica": refused.replica,
        "engine": request.engine.name,
        "fingerprint": None,
        "argv": [],
        "environment": {},
        "asked": _asked_json(request),
        "granted": None,
        "fit": None,
        "speculation": {
            "asked": asked_mode(request),
            "resolved": None,
            "chained": False,
            "depth": None,
            "depth_source": None,
            "drafter": None,
            "reason": None,
        },
        "reasons": [reason_json(refused.failure.reason)],
    }


def asked_speculation(plan: LaunchPlan) -> str | None:
    """The mode of the policy; None when the model's own arguments drive speculation (05 §1.6)."""
    return None if plan.spec.resolved == "user" else plan.spec.requested


def asked_mode(request: ModelRequest) -> str | None:
    """The same of a request that was not planned yet."""
    return None if owns_speculation(request.extra_args) else request.spec.mode


def granted_cache_json(cache_types: tuple[str | None, str | None]) -> dict[str, str]:
    """The cache types that are passed, or the engine's own where none is."""
    key, value = cache_types
    return {"k": key or ENGINE_CACHE_TYPE, "v": value or ENGINE_CACHE_TYPE}


def granted_devices(plan: LaunchPlan) -> tuple[str, ...]:
    """Names of the devices that hold something of the model, as the engine orders them; none where the engine
    chooses among those of the pool and nothing was planned."""
    if plan.fit.total_bytes:
        return tuple(plan.fit.total_bytes)
    if plan.placement.devices:
        return plan.placement.devices
    return (HOST_NAME,) if set(plan.request.pool.devices) == {HOST_POOL_WORD} else ()


def granted_offload(plan: LaunchPlan) -> str | dict[str, int | None]:
    """What goes to GPUs by the memory plan, or as asked where nothing was planned. A null number of layers is
    all of them."""
    fit = plan.fit
    if fit.context is None:
        return _offload_json(plan.request)
    if fit.gpu_layers == 0:
        return "none"
    if fit.gpu_layers is None and not fit.cpu_experts:
        return "all"
    return {"gpu_layers": fit.gpu_layers, "cpu_experts": fit.cpu_experts}


def _planned_json(instance: LaunchPlan | RefusedInstance) -> dict[str, Any]:
    if isinstance(instance, RefusedInstance):
        return refused_plan_json(instance)
    return instance_plan_json(instance)


def _asked_json(request: ModelRequest) -> dict[str, Any]:
    key, value = request.cache_type
    return {
        "context": request.n_ctx or AUTO,
        "slots": request.slots,
        "kv_cache": {"k": key or AUTO, "v": value or AUTO},
        "speculation": request.spec.mode,
        "offload": _offload_json(request),
    }


def granted_json(plan: LaunchPlan) -> dict[str, Any]:
    """What a plan gives."""
    is_planned = plan.fit.context is not None
    return {
        # 0 leaves the length to the engine; without a memory plan it is known when the instance runs.
        "context": plan.fit.context or plan.context or None,
        "slots": plan.slots,
        "kv_cache": granted_cache_json(plan.fit.cache_types if is_planned else plan.cache_types),
        "speculation": plan.spec.resolved,
        "offload": granted_offload(plan),
        "devices": list(granted_devices(plan)),
        "placement": _placement_json(plan.placement),
    }


def _placement_json(placement: Placement) -> dict[str, Any]:
    """Whether the engine's own fit step decides; else how the model is divided, by layers of each device."""
    return {
        "delegated": placement.is_delegated,
        "split": placement.split,
        "shares": dict(zip(placement.devices, placement.shares, strict=False)),
    }


def _offload_json(request: ModelRequest) -> str | dict[str, int | None]:
    if request.memory_mode == "auto" or request.gpu_layers < 0:
        return AUTO
    if request.gpu_layers == 0:
        return "none"
    return {"gpu_layers": request.gpu_layers, "cpu_experts": request.n_cpu_moe}


def _decision_json(spec: SpecDecision) -> dict[str, Any]:
    return {
        "asked": None if spec.resolved == "user" else spec.requested,
        "resolved": spec.resolved,
        "chained": spec.is_chained,
        "depth": spec.depth,
        "depth_source": spec.depth_source,
        "drafter": spec.drafter,
        "reason": optional_reason_json(spec.reason),
    }
