"""Values as JSON, whatever they hold. Pure.

The one way from a value to the bytes of an answer. Names of files may be no UTF-8 and numbers in headers may
have more than 64 bits; neither may keep a page or an answer from its reader.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import orjson

from framework.values.plain_text import encodable


def json_bytes(value: Any) -> bytes:
    """The value as JSON in UTF-8. Raises TypeError for what is no JSON value.

    Bytes that are no text are shown as `plain_text` does, a number that JSON does not have is null.
    """
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(sendable(value), ensure_ascii=False, separators=(",", ":")).encode()


def sendable(value: Any) -> Any:
    """The value with such texts and numbers put right."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, Mapping):
        return {sendable(name): sendable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [sendable(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
