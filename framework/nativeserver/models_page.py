"""GET /models and /v1/models: the one model of this server (12 §16.4, 15 §6). Never wakes the engine."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.services import Services, services_of
from framework.nativeserver.transport import JsonResponse


async def endpoint(request: Request) -> Response:
    """OpenAI's list, and the one that Ollama's clients look for."""
    services = services_of(request)
    return JsonResponse({"models": [_named(services)], "object": "list", "data": [_entry(services)]})


def _entry(services: Services) -> dict[str, Any]:
    meta = services.bridge.meta
    return {
        "id": services.model_name,
        "aliases": list(services.options.aliases) or [services.model_name],
        "tags": list(services.options.tags),
        "object": "model",
        # Of the load, so that the same answer can be recognised as such.
        "created": services.created_at,
        "owned_by": "llamacpp",
        "meta": {
            "vocab_type": meta.vocab_type,
            "n_vocab": meta.n_vocab,
            "n_ctx": services.bridge.facts.n_ctx_slot,
            "n_ctx_train": meta.n_ctx_train,
            "n_embd": meta.n_embd,
            "n_params": meta.n_params,
            "size": meta.size_bytes,
            "ftype": meta.file_type,
        },
    }


def _named(services: Services) -> dict[str, Any]:
    details = {"parent_model": "", "format": "gguf", "family": "", "families": [""]}
    return {
        "name": services.model_name,
        "model": services.model_name,
        "modified_at": "",
        "size": "",
        "digest": "",
        "type": "model",
        "description": "",
        "tags": list(services.options.tags) or [""],
        "capabilities": ["completion"],
        "parameters": "",
        "details": {**details, "parameter_size": "", "quantization_level": ""},
    }
