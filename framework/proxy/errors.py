"""Errors of the endpoint: one exception, one table of codes, one envelope (08 §26, 13 §7).

Every refusal and failure that a client may see is a `ProxyError`, from wherever it is raised:

    ProxyError            the request ends with this code; `status` and `type` follow from it
    ClientGone            nobody is left to answer (record 499)
    Interrupted           the request was stopped from outside (framework/proxy/interrupt.py)
    UpstreamLost          the connection to an instance broke; may be retried (framework/proxy/upstream.py)

Anything else that escapes is a fault of ours: it is logged with its trace and shown as `internal_error`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from framework.proxy.public_reason import public_reason, without_paths
from framework.runtime.lease import LeaseRefused, RevokeCode
from framework.runtime.refusals import retry_after_s
from framework.values.instance import LoadProgress
from framework.values.json_bytes import json_bytes
from framework.values.reason import Reason, as_json

STATUS: Mapping[str, int] = {
    "invalid_body": 400,
    "model_required": 400,
    "invalid_image": 400,
    "image_format_not_supported": 400,
    "image_not_supported": 400,
    "image_without_user_message": 400,
    "remote_media_disabled": 400,
    "audio_not_supported": 400,
    "audio_format_not_supported": 400,
    "transcription_not_supported": 400,
    "tools_not_supported": 400,
    "count_needs_text": 400,
    "context_length_exceeded": 400,
    "key_missing": 401,
    "key_invalid": 401,
    "model_not_allowed": 403,
    "host_not_allowed": 403,
    "origin_not_allowed": 403,
    "model_not_found": 404,
    "request_not_found": 404,
    "route_not_found": 404,
    "method_not_allowed": 405,
    "cancelled": 409,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "rate_limited": 429,
    "concurrency_limited": 429,
    "tokens_limited": 429,
    "model_load_failed": 500,
    "internal_error": 500,
    "not_supported": 501,
    "connection_lost": 502,
    "upstream_error": 502,
    "upstream_protocol_error": 502,
    "tokenizer_failed": 502,
    "stream_truncated": 502,
    "stream_interrupted": 502,
    "model_loading": 503,
    "model_not_loaded": 503,
    "queue_full": 503,
    "no_memory": 503,
    "instance_restarting": 503,
    "instance_replaced": 503,
    "model_unloaded": 503,
    "shutting_down": 503,
    "server_busy": 503,
    "connect_timeout": 504,
    "first_token_timeout": 504,
    "stream_stalled": 504,
}
TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "conflict_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    500: "server_error",
    501: "not_supported_error",
    502: "upstream_error",
    503: "unavailable_error",
    504: "timeout_error",
}
CLIENT_CLOSED = 499
"""Status of a request whose client left, or that was cancelled; recorded, never sent."""
REVOKED: Mapping[RevokeCode, str] = {
    "model_unloaded": "The model was unloaded while it worked on this request.",
    "instance_replaced": "The model was replaced while it worked on this request. Send it again.",
    "shutting_down": "The server is shutting down.",
}


class ClientGone(Exception):
    """The client has left, or takes nothing any more; whatever is sent reaches nobody."""


class ProxyError(Exception):
    """A request that ends with an error. `message` is a plain sentence; clients act on `status` and `code`.

    `status` and `error_type` are given only where an instance's own are passed on. `extra` holds further
    fields of the error object.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        error_type: str | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
        reason: Reason | None = None,
        progress: LoadProgress | None = None,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status or STATUS[code]
        self.type = error_type or TYPES[self.status]
        self.param = param
        self.retry_after_s = retry_after_s
        self.reason = reason
        self.progress = progress
        self.extra = dict(extra or {})
        self._headers = dict(headers or {})

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer besides the usual ones: `Retry-After` in whole seconds, at least 1."""
        if self.retry_after_s is None:
            return self._headers
        return {**self._headers, "retry-after": str(max(1, math.ceil(self.retry_after_s)))}


def envelope(error: ProxyError, request_id: str) -> bytes:
    """The error object as JSON: the body of an answer, or the payload of an in-stream event."""
    return json_bytes({"error": error_object(error, request_id)})


ErrorForm = Callable[[ProxyError, str], bytes]
"""Writes an error and the id of its request as a JSON body."""


def error_object(error: ProxyError, request_id: str) -> dict[str, Any]:
    """What is told of an error. A reason is shown as clients may see it."""
    body: dict[str, Any] = {
        "message": error.message,
        "type": error.type,
        "param": error.param,
        "code": error.code,
        "request_id": request_id,
        **error.extra,
    }
    if error.reason is not None:
        body["reason"] = as_json(public_reason(error.reason), {})
    if error.progress is not None:
        body["progress"] = asdict(error.progress)
    return body


def internal_error(request_id: str) -> ProxyError:
    """What a client sees of a fault of ours; the trace is in the log under the same id (08 §26.5)."""
    return ProxyError(
        "internal_error",
        f"Something went wrong inside the server. Its log has the details under {request_id}.",
    )


def refused_lease(refused: LeaseRefused, *, names_others: bool = True) -> ProxyError:
    """Why no instance can be had, as an answer (08 §2.4), without what only the operator may see.

    Whoever may use some models only is not told which others are in the way.
    """
    if refused.code == "no_memory" and not names_others:
        message = "There is no memory for this model now: other models are in use."
        return ProxyError(refused.code, message, retry_after_s=refused.retry_after_s)
    return ProxyError(
        refused.code,
        without_paths(refused.message, refused.reason),
        retry_after_s=refused.retry_after_s,
        reason=refused.reason,
        progress=refused.progress,
    )


def revoked_lease(code: RevokeCode) -> ProxyError:
    """The end of a request whose instance does not wait for it any longer (08 §2.5, §4.6)."""
    return ProxyError(code, REVOKED[code], retry_after_s=retry_after_s(None))
