"""An instance's refusals as ours: which status, which code, what a person reads (08 §26.4, 15 §5). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from framework.proxy.errors import ProxyError
from framework.proxy.usage import count
from framework.values.request import ModelRequest

QUOTED = 2000
BAD_REQUEST = 400
SERVER_ERROR = 500
BAD_GATEWAY = 502
UNAVAILABLE = 503
NOT_FOUND = 404
PASSED_ON: Mapping[int, str] = {
    400: "invalid_body",
    404: "route_not_found",
    413: "body_too_large",
    422: "invalid_body",
    429: "rate_limited",
    501: "not_supported",
    503: "upstream_error",
}
"""Statuses that stay as they are, with the code that goes with each."""
# The client's key is not at fault when an instance does not accept ours.
OUR_FAULT = (401, 403)
ENGINE_TYPES = frozenset(
    {"invalid_request_error", "not_found_error", "server_error", "not_supported_error"}
    | {"unavailable_error", "exceed_context_size_error"}
)
# What llama-server calls an error of its own, and is a body that it could not make sense of (15 §5).
MISREAD = (
    "Failed to parse messages",
    "[json.exception",
    "vector::_M_range_check",
    "vector::_M_default_append",
    "Failed to parse tools",
    '"prompt" ',
    "is required",
    "Missing '",
)
TOO_LARGE = "is too large to process"
LOADING = "Loading model"
LACKING_ROUTE = "File Not Found"
# What an engine of either kind says where a flag of its start is lacking.
LACKING_FLAG = re.compile(r"Start it with `(--[a-z-]+)`")
CREDENTIAL = re.compile(r"^\S+\s+")


def engine_refusal(
    status: int, body: bytes, *, model: ModelRequest, headers: Mapping[str, str] | None = None
) -> ProxyError:
    """The answer to a client whose request got `status` and `body` from an instance.

    `headers` are those that were sent to the instance; a credential among them never gets into the answer.
    """
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    error = parsed.get("error") if isinstance(parsed, dict) else None
    if not isinstance(error, dict):
        error = {"message": error if isinstance(error, str) else body.decode("utf-8", "replace")}
    return error_of_engine(status, error, model=model, headers=headers)


def error_of_engine(
    status: int, error: Mapping[str, Any], *, model: ModelRequest, headers: Mapping[str, str] | None = None
) -> ProxyError:
    """The same for an error object: the one of a body, or one that came as an event of a stream."""
    message = _without_credentials(str(error.get("message") or "no message")[:QUOTED], headers or {})
    kind = error.get("type")
    if kind == "exceed_context_size_error":
        return _too_long(error, message, model)
    if TOO_LARGE in message:
        return _beyond_batch(message, model)
    if status == SERVER_ERROR and any(sign in message for sign in MISREAD):
        status, kind = BAD_REQUEST, "invalid_request_error"
    kept = kind if kind in ENGINE_TYPES and status not in OUR_FAULT else None
    return ProxyError(
        _code(status, message),
        _sentence(status, message, model),
        status=_status(status, message),
        error_type=kept,
        retry_after_s=1.0 if status == UNAVAILABLE else None,
        extra={"upstream_status": status},
    )


def event_status(error: object) -> int:
    """The HTTP status inside an in-stream error object, 500 when it tells none (08 §6.5)."""
    code = count(error, "code") if isinstance(error, Mapping) else None
    return code if code is not None and 400 <= code <= 599 else 500


def _status(status: int, message: str) -> int:
    if status == NOT_FOUND and message == LACKING_ROUTE:
        return 501
    return status if status in PASSED_ON else BAD_GATEWAY


def _code(status: int, message: str) -> str:
    if status == NOT_FOUND and message == LACKING_ROUTE:
        return "not_supported"
    if status == UNAVAILABLE and message == LOADING:
        return "model_loading"
    return PASSED_ON.get(status, "upstream_error")


def _sentence(status: int, message: str, model: ModelRequest) -> str:
    if status in OUR_FAULT:
        return f"The engine of model {model.id} did not accept this server's own key: {message}"
    if status == 501 or (status == NOT_FOUND and message == LACKING_ROUTE):
        told = f"Model {model.id} does not support this kind of request. The engine says: {message}"
        flag = LACKING_FLAG.search(message)
        if flag is None:
            return told
        here = f'engine_args = ["{flag[1]}"] of models.{model.id} in the manifest'
        return f"{told.rstrip('.')}. Here that is {here}."
    return message


def _too_long(error: Mapping[str, Any], message: str, model: ModelRequest) -> ProxyError:
    prompt, limit = count(error, "n_prompt_tokens"), count(error, "n_ctx")
    sentence = message
    if prompt is not None and limit is not None:
        sentence = (
            f"The prompt has {prompt} tokens; one slot of model {model.id} holds {limit}. Shorten it, or "
            f"raise models.{model.id}.context, which its {model.slots} slots share."
        )
    return ProxyError(
        "context_length_exceeded",
        sentence,
        error_type="exceed_context_size_error",
        extra={"n_prompt_tokens": prompt, "n_ctx": limit, "upstream_status": 400},
    )


def _beyond_batch(message: str, model: ModelRequest) -> ProxyError:
    """An input that is read in one piece, as for embeddings and ranking."""
    return ProxyError(
        "context_length_exceeded",
        f"{message.rstrip('.')}. Shorten it, or raise batch.physical of models.{model.id}, into which each"
        " input has to fit.",
        error_type="exceed_context_size_error",
        extra={"upstream_status": SERVER_ERROR},
    )


def _without_credentials(message: str, headers: Mapping[str, str]) -> str:
    for value in headers.values():
        secret = CREDENTIAL.sub("", value)
        if secret:
            message = message.replace(secret, "<redacted>")
    return message
