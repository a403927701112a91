"""The kinds of parts that the content of a message may consist of, by route. Pure.

Engines pass over a part that they do not know without a word, or refuse it without its name. So what was
found and what is allowed is said here, before a model is loaded. Items of the Responses API are left to the
engine, which names both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.proxy.errors import ProxyError
from framework.proxy.model_choice import shown

CHAT_PARTS = ("text", "refusal", "image_url", "input_audio")
MESSAGE_BLOCKS = ("text", "image", "thinking", "redacted_thinking", "tool_use", "tool_result")


def check_kind(part: Mapping[str, Any], allowed: tuple[str, ...], *, param: str) -> None:
    """Refuse a part of another type than the `allowed` ones. Raises ProxyError `invalid_body`."""
    kind = part.get("type")
    if isinstance(kind, str) and kind in allowed:
        return
    if isinstance(kind, str):
        found = f"is of type {shown(kind)}"
    elif kind is None:
        found = "has no `type`"
    else:
        found = "has a `type` that is no text"
    names = f"{', '.join(allowed[:-1])} and {allowed[-1]}"
    raise ProxyError(
        "invalid_body", f"A part of a message {found}. Allowed are {names}; send its text.", param=param
    )
