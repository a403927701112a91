"""Errors as clients of Anthropic's API read them (08 §26.1). Pure.

The object is the one of every other route, with the words that Anthropic has for its `type`. A prompt that is
too long is told in the sentence by which such clients know that they have to shorten it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.proxy.errors import ProxyError, error_object
from framework.values.json_bytes import json_bytes

TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
"""Status to type; other statuses below 500 are invalid requests, the rest are errors of the server."""


def anthropic_envelope(error: ProxyError, request_id: str) -> bytes:
    """The body of an answer."""
    return json_bytes(anthropic_error(error, request_id))


def anthropic_error(error: ProxyError, request_id: str) -> dict[str, Any]:
    """The same as an object, which is also the payload of an error in a stream."""
    found = error_object(error, request_id)
    other = "invalid_request_error" if error.status < 500 or error.status == 501 else "api_error"
    found["type"] = TYPES.get(error.status, other)
    prompt, limit = found.get("n_prompt_tokens"), found.get("n_ctx")
    if error.code == "context_length_exceeded" and prompt is not None and limit is not None:
        found["message"] = f"prompt is too long: {prompt} tokens > {limit} maximum. {error.message}"
    return {"type": "error", "error": found, "request_id": request_id}
