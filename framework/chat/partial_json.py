"""JSON that is not complete yet: where a value ends, and what would make a cut one whole.

Called by chat.text_source for arguments of calls as they arrive, and where a whole object is owed to a client
although the model was cut off. Nesting is counted, not followed, so that no depth of it can hurt.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_CLOSED_CHARS = 1 << 20
"""Longer texts are not repaired."""
_STRUCTURE = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')
_SCALAR_END = re.compile(r"[\s,}\]]")
_CUT_MEMBER = re.compile(r',\s{0,16}$|,?\s{0,16}"(?:[^"\\]|\\.)*"\s{0,16}:?\s{0,16}$')
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")


class JsonScanner:
    """Follows one value through the pieces of a text. What it holds does not grow with the text."""

    def __init__(self) -> None:
        self.is_done = False
        self._depth = 0
        self._in_string = False
        self._is_escaped = False
        self._is_scalar = False

    def scan(self, text: str, at: int) -> int:
        """Where the value, or the part of it that is here, ends. The first call is at its first character."""
        if self._depth == 0 and not self._in_string and not self._is_scalar:
            if at == len(text):
                return at
            self._is_scalar = text[at] not in '{["'
        if self._is_scalar:
            end = _SCALAR_END.search(text, at)
            self.is_done = end is not None
            return end.start() if end else len(text)
        while at < len(text) and not self.is_done:
            at = self._step(text, at)
        return at

    def _step(self, text: str, at: int) -> int:
        if self._is_escaped:
            self._is_escaped = False
            return at + 1
        found = (_IN_STRING if self._in_string else _STRUCTURE).search(text, at)
        if found is None:
            return len(text)
        sign = found[0]
        if sign == "\\":
            self._is_escaped = True
        elif sign == '"':
            self._in_string = not self._in_string
        else:
            self._depth += 1 if sign in "{[" else -1
        self.is_done = self._depth <= 0 and not self._in_string and not self._is_escaped
        return found.end()


def object_of(text: str) -> dict[str, Any]:
    """The object that a text is, or is the beginning of; empty when it is neither."""
    for candidate in (text, closed(text)):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return {}


def closed(text: str) -> str:
    """The text with its open strings, lists and objects closed; a member without a value is left out."""
    if len(text) > MAX_CLOSED_CHARS:
        return ""
    ends, in_string = _open_ends(text)
    if in_string:
        whole = _CUT_ESCAPE.sub("", text) + '"'
        if _parses(whole + ends):
            return whole + ends
    elif _parses(text + ends):
        return text + ends
    return _CUT_MEMBER.sub("", text + '"' if in_string else text) + ends


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _open_ends(text: str) -> tuple[str, bool]:
    """What closes the open lists and objects, and whether a string is open."""
    ends: list[str] = []
    in_string, at = False, 0
    while found := (_IN_STRING if in_string else _STRUCTURE).search(text, at):
        at = found.end()
        sign = found[0]
        if sign == "\\":
            at += 1
        elif sign == '"':
            in_string = not in_string
        elif sign in "{[":
            ends.append("}" if sign == "{" else "]")
        elif ends:
            ends.pop()
    return "".join(reversed(ends)), in_string
