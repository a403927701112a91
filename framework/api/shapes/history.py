"""Histories as JSON: steps of a minute, oldest first; what was not seen is null."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from framework.api.shapes.basic import at
from framework.values.history import STEP_S, DeviceHistory, DeviceStep, ModelHistory, ModelStep


def model_history_json(history: ModelHistory) -> dict[str, Any]:
    """One model, for the last hour at most."""
    return {
        "model": history.model,
        "step_s": STEP_S,
        "steps": [_model_step(step) for step in history.steps],
    }


def device_histories_json(histories: Iterable[DeviceHistory]) -> dict[str, Any]:
    """The devices of all pools, for the last hour at most."""
    return {
        "step_s": STEP_S,
        "devices": [
            {
                "name": one.device,
                "total_bytes": one.total_bytes,
                "steps": [_device_step(step) for step in one.steps],
            }
            for one in histories
        ],
    }


def _model_step(step: ModelStep) -> dict[str, Any]:
    return {
        "at": at(step.at),
        "requests": {
            "answered": step.answered,
            "left": step.left,
            "refused": step.refused,
            "failed": step.failed,
        },
        "first_token_s": {"p50": step.first_token_p50_s, "p95": step.first_token_p95_s},
        "queue_s": {"p95": step.queue_p95_s},
        "tokens_per_s": {"prompt": step.prompt_tokens_per_s, "generation": step.generation_tokens_per_s},
        "prompt_tokens": step.prompt_tokens,
        "generated_tokens": step.generated_tokens,
        "busy_slots": step.busy_slots,
        "slots": step.slots,
        "waiting": step.waiting,
        "drafted": step.drafted,
        "accepted": step.accepted,
        "depth": step.depth,
    }


def _device_step(step: DeviceStep) -> dict[str, Any]:
    return {"at": at(step.at), "used_bytes": step.used_bytes, "planned_bytes": step.planned_bytes}
