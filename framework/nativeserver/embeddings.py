"""`/embeddings` and `/v1/embeddings` (12 §12)."""

from __future__ import annotations

import base64
import logging
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.core import Result
from framework.nativeserver.driver import collect
from framework.nativeserver.errors import ApiError
from framework.nativeserver.field_table import INT32_MAX, Field, fault, read_field
from framework.nativeserver.off_loop import LARGE, off_loop_if
from framework.nativeserver.pooled_tasks import (
    MAX_INPUTS,
    POOLING_NONE,
    pooled_tasks,
    prompt_usage,
    told_model,
)
from framework.nativeserver.prompt_input import read_inputs
from framework.nativeserver.services import services_of
from framework.nativeserver.transport import JsonResponse, read_json

log = logging.getLogger(__name__)

EUCLIDEAN = 2
MAX_NUMBERS = 2**25
"""In an answer: 8192 inputs with vectors of 4096. With pooling none every token has a vector."""
ENCODINGS = ("float", "base64")
_NORMALIZE = Field(("embd_normalize",), "integer", low=-1, high=INT32_MAX)


async def native_endpoint(request: Request) -> Response:
    """POST `/embedding`, `/embeddings`."""
    return await _answer(request, is_native=True)


async def oai_endpoint(request: Request) -> Response:
    """POST `/v1/embeddings`."""
    return await _answer(request, is_native=False)


async def _answer(request: Request, *, is_native: bool) -> Response:
    services = services_of(request)
    if not services.options.embeddings:
        raise ApiError(
            "not_supported", "This server does not support embeddings. Start it with `--embeddings`"
        )
    body = await read_json(request)
    await services.bridge.ready_or_wake()
    pooling = services.bridge.facts.pooling
    if pooling == POOLING_NONE and not is_native:
        raise ApiError(
            "invalid_request",
            "Pooling type 'none' is not OAI compatible. Please use a different pooling type, or /embeddings",
        )
    name = embedding_input(body)
    encoding, model = read_encoding(body), told_model(body, services)
    inputs = await read_inputs(request.receive, body[name], services.bridge, name=name, most=MAX_INPUTS)
    if not all(inputs):
        raise ApiError("invalid_request", "Input content cannot be empty")
    n_rows = sum(map(len, inputs)) if pooling == POOLING_NONE else len(inputs)
    n_numbers = n_rows * services.bridge.meta.n_embd
    refuse_many_numbers(n_numbers)
    tasks = pooled_tasks(services, "embedding", inputs, embd_normalize=read_normalize(body, pooling))
    results = await collect(request, services, tasks)
    if is_native or name == "content":
        return await off_loop_if(n_numbers > LARGE, lambda: JsonResponse(native_shape(results)))
    return await off_loop_if(
        n_numbers > LARGE, lambda: JsonResponse(oai_shape(results, inputs, model, encoding))
    )


def refuse_many_numbers(n_numbers: int) -> None:
    """Raises ApiError when vectors would take more memory than an answer should."""
    if n_numbers > MAX_NUMBERS:
        raise ApiError(
            "invalid_request",
            f"The answer would hold {n_numbers} numbers; at most {MAX_NUMBERS} are told at once."
            " Send fewer inputs",
        )


def embedding_input(body: Mapping[str, Any]) -> str:
    """The field with the inputs: `input`, or `content`, which makes the answer a native one."""
    for name in ("input", "content"):
        if body.get(name) is not None:
            return name
    raise ApiError("invalid_request", '"input" or "content" must be provided')


def read_encoding(body: Mapping[str, Any]) -> str:
    """How vectors are written."""
    encoding = body.get("encoding_format")
    if encoding is None:
        return "float"
    if encoding not in ENCODINGS:
        raise fault("encoding_format", "must be 'float' or 'base64'")
    return str(encoding)


def read_normalize(body: Mapping[str, Any], pooling: int) -> int:
    """The norm that vectors are divided by; without pooling they are left as they are."""
    value = read_field(_NORMALIZE, body, {})
    if value is not None and pooling == POOLING_NONE and value != EUCLIDEAN:
        log.info("embd_normalize is ignored: vectors are not normalised with pooling none")
    return EUCLIDEAN if value is None else int(value)


def native_shape(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Every vector of every input: several with pooling none."""
    return [
        {"index": result.index, "embedding": [list(vector) for vector in result.embeddings]}
        for result in results
    ]


def oai_shape(
    results: Sequence[Result], inputs: Sequence[Sequence[int]], model: str, encoding: str
) -> dict[str, Any]:
    """One vector for each input."""
    return {
        "model": model,
        "object": "list",
        "usage": prompt_usage(inputs),
        "data": [_entry(result, encoding) for result in results],
    }


def _entry(result: Result, encoding: str) -> dict[str, Any]:
    vector = list(result.embeddings[0])
    if encoding == "base64":
        packed = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        return {
            "embedding": packed,
            "index": result.index,
            "object": "embedding",
            "encoding_format": "base64",
        }
    return {"embedding": vector, "index": result.index, "object": "embedding"}
