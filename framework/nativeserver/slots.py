"""GET /slots: what every slot did last, of the snapshot (12 §15.1-15.4). Never wakes the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.bridge import READY
from framework.nativeserver.errors import ApiError
from framework.nativeserver.off_loop import off_loop_if
from framework.nativeserver.services import Services, services_of
from framework.nativeserver.speculation_shape import loop_guard_json, speculation_json
from framework.nativeserver.task_shapes import long_params, short_params
from framework.nativeserver.timings_shape import timings_json
from framework.nativeserver.transport import JsonResponse, read_text

IDLE = "idle"


async def endpoint(request: Request) -> Response:
    """The list; 503 when an idle slot is asked for and there is none."""
    services = services_of(request)
    if not services.options.slots:
        raise ApiError("not_supported", "This server does not show its slots. Start it without `--no-slots`")
    views = services.bridge.snapshot().slots
    wants_idle = bool(request.query_params.get("fail_on_no_slot"))
    if wants_idle and not any(view.state == IDLE for view in views):
        raise ApiError("unavailable", "no slot available")
    is_debugged = bool(services.options.engine.get("slots_debug"))
    return await off_loop_if(is_debugged, _answer, views, services)


def _answer(views: Sequence[Any], services: Services) -> Response:
    """Whole prompts and replies where slots are debugged."""
    return JsonResponse([slot_json(view, services) for view in views])


def slot_json(view: Any, services: Services) -> dict[str, Any]:
    """One entry of the list."""
    return {
        "id": view.id,
        "n_ctx": view.n_ctx,
        "speculative": bool(services.bridge.speculation().types),
        "is_processing": view.state != IDLE,
        "state": view.state,
        "t_last_used_ms": view.idle_ms,
        "n_cached_tokens": view.n_cached_tokens,
        "n_checkpoints": view.n_checkpoints,
        **(_task_json(view, services) if view.was_used else {}),
        "speculation": speculation_json(view.speculation, services.bridge.undrafted_reason),
        "loop_guard": loop_guard_json(view.loop_guard),
    }


def _task_json(view: Any, services: Services) -> dict[str, Any]:
    is_debugged = bool(services.options.engine.get("slots_debug"))
    form = long_params if is_debugged else short_params
    asked = services.options.speculation_types
    next_token = {
        "has_next_token": view.has_next_token,
        "has_new_line": view.has_new_line,
        "n_remain": view.n_remaining,
        "n_decoded": view.n_decoded,
    }
    return {
        "id_task": view.id_task,
        "n_prompt_tokens": view.n_prompt_tokens,
        "n_prompt_tokens_processed": view.n_prompt_processed,
        "n_prompt_tokens_cache": view.n_prompt_cached,
        **({} if view.params is None else {"params": form(view.params, n_ctx=view.n_ctx, drafters=asked)}),
        "next_token": [next_token],
        "timings": timings_json(view),
        **(_texts_json(view, services) if is_debugged else {}),
    }


def _texts_json(view: Any, services: Services) -> dict[str, str]:
    """Prompt and reply; without a model in memory the prompt can't be read."""
    is_awake = services.bridge.state == READY
    prompt = read_text(services.bridge.detokenize(view.prompt_tokens)) if is_awake else ""
    return {"prompt": prompt, "generated": read_text(view.generated)}
