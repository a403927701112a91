"""How much JSON a body may hold, whatever its size in bytes (12 §2.11-2.13). Called by transport.

The parser makes an object of every list, member and number, and nothing else runs in the process meanwhile: a
body of brackets takes a hundred times as long as a text of the same size. So the signs of such bodies are
counted as the bytes come, before anything is parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.nativeserver.errors import ApiError

MOST_CONTAINERS = 2**19
"""Lists and objects: half a second of parsing. A chat of 100 000 messages has a fifth of it."""
MOST_MEMBERS = 2**19
"""Names with their values: as long, when all names differ."""
MOST_VALUES = 2**21
"""Entries: as long. A list of that many token ids fills the largest contexts there are."""
MOST_FIELDS = 1024
"""Members of the body itself, each of which is looked at several times. No interface has 200."""
MOST_DEPTH = 128
"""Levels of lists and objects. What works on a body may do so by recursion."""


class JsonTally:
    """Brackets, braces, colons and commas of a body: those in texts too, since counting is ten times
    as fast as parsing."""

    def __init__(self) -> None:
        self._n_containers = 0
        self._n_members = 0
        self._n_values = 0
        self.fault: ApiError | None = None
        """What is wrong with the body, once there is too much of something."""

    def add(self, chunk: bytes) -> None:
        """Count the next bytes; of a body that is refused no more is counted."""
        if self.fault is not None:
            return
        self._n_containers += chunk.count(b"[") + chunk.count(b"{")
        self._n_members += chunk.count(b":")
        self._n_values += chunk.count(b",")
        if self._n_containers > MOST_CONTAINERS:
            self.fault = _too_many("lists and objects", "'[' and '{'", MOST_CONTAINERS)
        if self._n_members > MOST_MEMBERS:
            self.fault = _too_many("names", "':'", MOST_MEMBERS)
        if self._n_values > MOST_VALUES:
            self.fault = _too_many("values", "','", MOST_VALUES)

    @property
    def may_be_deep(self) -> bool:
        """Whether there are brackets enough for a body that is nested too deeply."""
        return self._n_containers > MOST_DEPTH


def _too_many(what: str, signs: str, most: int) -> ApiError:
    return ApiError(
        "invalid_request",
        f"The body holds too many {what}: at most {most} of {signs} are allowed, in texts too;"
        " send it in parts",
    )


def refuse_many_fields(body: Mapping[str, Any]) -> None:
    """Raises ApiError for an object that is no request."""
    if len(body) > MOST_FIELDS:
        raise ApiError(
            "invalid_request", f"The body has {len(body)} fields; at most {MOST_FIELDS} are allowed"
        )


def is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects lie in each other more than so many times. Without recursion."""
    layer = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        layer = [
            part
            for outer in layer
            for part in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(part, dict | list)
        ]
    return bool(layer)
