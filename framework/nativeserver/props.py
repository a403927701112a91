"""GET and POST /props: what the server is and what it was started with (12 §16.1-16.3, 15 §6).

The manager reads the real context of a slot here. Reading never wakes the engine.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.bridge import SLEEPING
from framework.nativeserver.engine_params import engine_params
from framework.nativeserver.errors import ApiError
from framework.nativeserver.fields import read_generation
from framework.nativeserver.services import Services, services_of
from framework.nativeserver.speculation_shape import speculation_of_server
from framework.nativeserver.task_shapes import short_params
from framework.nativeserver.transport import JsonResponse


async def endpoint(request: Request) -> Response:
    """All of it."""
    return JsonResponse(props_json(services_of(request)))


async def change_endpoint(request: Request) -> Response:
    """Accepted with the switch, and changes nothing (12 §14.5)."""
    if not services_of(request).options.props:
        raise ApiError("not_supported", "This server's properties are fixed. Start it with `--props`")
    return JsonResponse({"success": True})


def props_json(services: Services) -> dict[str, Any]:
    """The object of a server whose model was loaded."""
    bridge, options = services.bridge, services.options
    meta, template = bridge.meta, services.templates
    tool_use = meta.chat_template_tool_use
    return {
        "default_generation_settings": {
            "params": short_params(_defaults(services)),
            "n_ctx": bridge.facts.n_ctx_slot,
        },
        "total_slots": bridge.n_slots,
        "model_alias": services.model_name,
        "model_ftype": meta.file_type,
        "model_path": str(options.engine.get("model_path", "")),
        "modalities": {"vision": False, "video": False, "audio": False},
        "media_marker": services.media_marker,
        "endpoint_slots": options.slots,
        "endpoint_props": options.props,
        "endpoint_metrics": options.metrics,
        "ui": False,
        "ui_settings": {},
        "chat_template": "" if template is None else template.source,
        "chat_template_caps": {} if template is None else dict(template.caps),
        **({"chat_template_tool_use": tool_use} if tool_use else {}),
        "bos_token": meta.bos_text,
        "eos_token": meta.eos_text,
        "build_info": services.fingerprint,
        "is_sleeping": bridge.state == SLEEPING,
        "cors_proxy_enabled": False,
        "speculation": _speculation_json(services),
        "engine": _engine_json(services),
    }


def _speculation_json(services: Services) -> dict[str, Any]:
    bridge, options = services.bridge, services.options
    settings = engine_params(bridge.module, options.engine).speculation
    return speculation_of_server(bridge.speculation(), options.speculation_types, settings, bridge.facts)


def _engine_json(services: Services) -> dict[str, Any]:
    bridge = services.bridge
    facts = bridge.facts
    return {
        "state": bridge.state,
        "library_version": bridge.meta.library_version,
        "removal": facts.removal,
        "n_swa": facts.n_swa,
        "recurrent": facts.is_recurrent,
        "kv_unified": facts.kv_unified,
        "n_batch": facts.n_batch,
        "n_ubatch": facts.n_ubatch,
    }


def _defaults(services: Services) -> Any:
    """Made once: an engine that sleeps can't tokenise, which a default bias may need."""
    if services.default_params is None:
        services.default_params = read_generation({}, services)
    return services.default_params
