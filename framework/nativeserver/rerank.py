"""`/rerank`: documents in the order of their relevance to a query (12 §13)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.bridge import EngineBridge
from framework.nativeserver.core import Result
from framework.nativeserver.driver import collect
from framework.nativeserver.errors import ApiError
from framework.nativeserver.field_table import INT32_MAX, Field, read_field
from framework.nativeserver.off_loop import LARGE, off_loop_if
from framework.nativeserver.pooled_tasks import (
    MAX_INPUTS,
    POOLING_RANK,
    pooled_tasks,
    prompt_usage,
    told_model,
)
from framework.nativeserver.prompt_input import refuse_endless
from framework.nativeserver.services import services_of
from framework.nativeserver.transport import JsonResponse, read_json

_PLACES = re.compile(r"\{query\}|\{document\}")
_TOP_N = Field(("top_n",), "integer", low=0, high=INT32_MAX)
_RETURN_TEXT = Field(("return_text",), "boolean")


@dataclass(frozen=True)
class RerankBody:
    """What a request asks for."""

    query: str
    documents: list[str]
    top_n: int
    is_tei: bool
    """`texts` instead of `documents`: the form of text-embeddings-inference."""
    return_text: bool


def read_rerank(body: Mapping[str, Any]) -> RerankBody:
    """The fields of a body. Raises ApiError (12 §13.1)."""
    query = body.get("query")
    if not isinstance(query, str):
        raise ApiError("invalid_request", '"query" must be provided, a string')
    is_tei = body.get("documents") is None
    documents = body.get("texts") if is_tei else body.get("documents")
    if not isinstance(documents, list) or not documents:
        raise ApiError("invalid_request", '"documents" must be a non-empty string array')
    if len(documents) > MAX_INPUTS:
        raise ApiError(
            "invalid_request", f"{len(documents)} documents; at most {MAX_INPUTS} are allowed in one request"
        )
    if not all(isinstance(document, str) for document in documents):
        raise ApiError(
            "invalid_request", '"documents" must be a non-empty string array: an entry is no string'
        )
    top_n = read_field(_TOP_N, body, {})
    return RerankBody(
        query=query,
        documents=documents,
        top_n=len(documents) if top_n is None else int(top_n),
        is_tei=is_tei,
        return_text=bool(read_field(_RETURN_TEXT, body, {})),
    )


def pair_tokens(query: str, document: str, bridge: EngineBridge) -> list[int]:
    """Query and document as the model was trained to see them (12 §13.2)."""
    meta = bridge.meta
    if meta.rerank_template:
        texts = {"{query}": query, "{document}": document}
        text = _PLACES.sub(lambda place: texts[place[0]], meta.rerank_template)
        return bridge.tokenize(text, add_special=False, parse_special=True)
    begin = [meta.bos] if meta.adds_bos and meta.bos >= 0 else []
    # Vocabularies of this kind may end a text with the separator alone.
    end_token = meta.eos if meta.eos >= 0 else meta.sep
    end = [end_token] if meta.adds_eos and end_token >= 0 else []
    separator = [meta.sep] if meta.adds_sep and meta.sep >= 0 else []
    asked, told = (
        bridge.tokenize(text, add_special=False, parse_special=False) for text in (query, document)
    )
    return [*begin, *asked, *end, *separator, *told, *end]


def _all_tokens(asked: RerankBody, bridge: EngineBridge) -> list[list[int]]:
    for document in asked.documents:
        refuse_endless(len(asked.query) + len(document), bridge)
    return [pair_tokens(asked.query, document, bridge) for document in asked.documents]


def ranked(results: Sequence[Result], top_n: int) -> list[Result]:
    """The best ones first; equal ones in the order of the documents."""
    return sorted(results, key=lambda result: -result.score)[:top_n]


def rerank_shape(
    asked: RerankBody, results: Sequence[Result], inputs: Sequence[Sequence[int]], model: str
) -> Any:
    """The list of text-embeddings-inference, or an object."""
    best = ranked(results, asked.top_n)
    if not asked.is_tei:
        return {
            "model": model,
            "object": "list",
            "usage": prompt_usage(inputs),
            "results": [{"index": result.index, "relevance_score": result.score} for result in best],
        }
    entries: list[dict[str, Any]] = [{"index": result.index, "score": result.score} for result in best]
    if asked.return_text:
        entries = [{**entry, "text": asked.documents[entry["index"]]} for entry in entries]
    return entries


async def endpoint(request: Request) -> Response:
    """POST `/rerank`, `/reranking`, `/v1/rerank`, `/v1/reranking`."""
    services = services_of(request)
    if not services.options.reranking or services.bridge.facts.pooling != POOLING_RANK:
        raise ApiError("not_supported", "This server does not support reranking. Start it with `--reranking`")
    body = await read_json(request)
    asked, model = read_rerank(body), told_model(body, services)
    await services.bridge.ready_or_wake()
    # The query is read once more with every document.
    n_chars = sum(map(len, asked.documents)) + len(asked.query) * len(asked.documents)
    inputs = await services.bridge.text_work.run(
        request.receive, n_chars, _all_tokens, asked, services.bridge
    )
    results = await collect(request, services, pooled_tasks(services, "rerank", inputs))
    return await off_loop_if(
        n_chars > LARGE, lambda: JsonResponse(rerank_shape(asked, results, inputs, model))
    )
