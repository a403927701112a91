"""Every route of the server: method, path, endpoint, and whether it needs the model in memory (12 §3).

Called by app.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from framework.nativeserver import (
    anthropic,
    apply_template,
    chat_completion,
    control,
    embeddings,
    health,
    infill,
    lora,
    metrics_page,
    models_page,
    native_completion,
    oai_completion,
    props,
    rerank,
    responses,
    slot_actions,
    slots,
    tokenizing,
    transcription,
)
from framework.nativeserver.bridge import FellAsleep
from framework.nativeserver.services import services_of
from framework.nativeserver.transport import forget_body

Endpoint = Callable[[Request], Awaitable[Response]]
TRIES = 3
"""An engine that sleeps after a second of rest may do so between its wake and the request."""


@dataclass(frozen=True)
class Row:
    """One endpoint and its paths."""

    method: str
    paths: tuple[str, ...]
    endpoint: Endpoint
    wakes: bool = True
    """Whether an engine that sleeps is woken first; what doesn't wake it answers without the model."""


ROWS: tuple[Row, ...] = (
    Row("GET", ("/health", "/v1/health"), health.endpoint, wakes=False),
    Row("GET", ("/metrics",), metrics_page.endpoint, wakes=False),
    Row("GET", ("/slots",), slots.endpoint, wakes=False),
    Row("POST", ("/slots/{id_slot}",), slot_actions.endpoint),
    Row("GET", ("/props",), props.endpoint, wakes=False),
    Row("POST", ("/props",), props.change_endpoint),
    Row("GET", ("/models", "/v1/models"), models_page.endpoint, wakes=False),
    Row("POST", ("/completion", "/completions"), native_completion.endpoint),
    Row("POST", ("/v1/completions",), oai_completion.endpoint),
    Row("POST", ("/chat/completions", "/v1/chat/completions"), chat_completion.endpoint),
    Row("POST", ("/v1/chat/completions/control",), control.endpoint),
    Row("POST", ("/responses", "/v1/responses"), responses.endpoint),
    Row("POST", ("/v1/messages",), anthropic.endpoint),
    Row("POST", ("/infill",), infill.endpoint),
    Row("POST", ("/embedding", "/embeddings"), embeddings.native_endpoint),
    Row("POST", ("/v1/embeddings",), embeddings.oai_endpoint),
    Row("POST", ("/rerank", "/reranking", "/v1/rerank", "/v1/reranking"), rerank.endpoint),
    Row("POST", ("/tokenize",), tokenizing.tokenize_endpoint),
    Row("POST", ("/detokenize",), tokenizing.detokenize_endpoint),
    Row("POST", ("/apply-template",), apply_template.apply_template),
    Row("POST", ("/v1/messages/count_tokens",), anthropic.count_tokens),
    Row(
        "POST",
        ("/chat/completions/input_tokens", "/v1/chat/completions/input_tokens"),
        apply_template.count_oai,
    ),
    Row("POST", ("/responses/input_tokens", "/v1/responses/input_tokens"), responses.count_tokens),
    Row("GET", ("/lora-adapters",), lora.list_endpoint),
    Row("POST", ("/lora-adapters",), lora.change_endpoint),
    # Refused whatever the engine does.
    Row("POST", ("/audio/transcriptions", "/v1/audio/transcriptions"), transcription.endpoint, wakes=False),
)


def make_routes(prefix: str) -> list[Route]:
    """The routes, each with the prefix before it."""
    return [
        Route(prefix + path, with_model(row.endpoint) if row.wakes else row.endpoint, methods=[row.method])
        for row in ROWS
        for path in row.paths
    ]


def with_model(endpoint: Endpoint) -> Endpoint:
    """The endpoint, with the model in memory; once more when that fell asleep meanwhile (12 §2.7)."""

    async def answered(request: Request) -> Response:
        response = await endpoint(request)
        forget_body(request)
        return response

    async def awake(request: Request) -> Response:
        bridge = services_of(request).bridge
        for _ in range(TRIES - 1):
            await bridge.ready_or_wake()
            try:
                return await answered(request)
            except FellAsleep:
                continue
        await bridge.ready_or_wake()
        return await answered(request)

    return awake
