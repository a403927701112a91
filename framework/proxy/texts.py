"""What was asked and answered, as far as the request log keeps it (`request_log = "full"`). Pure.

Bounded however large a request is, and taken once, when its body was read and as its answer comes. Secrets
are hidden by the rules of 06 §15; pictures and sound are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from framework.engines.redaction import redact_text
from framework.proxy.stream_events import StreamEvent, choices_of, delta_of, index_of
from framework.values.request_record import TEXTS_LIMIT_BYTES, RequestTexts

HALF_BYTES = TEXTS_LIMIT_BYTES // 2
# No body that means something nests deeper; a hostile one may.
MOST_DEPTH = 16
# What a value costs besides its text, so that a million empty ones are not kept.
VALUE_BYTES = 4
# Fields that hold media as text, and from which length on.
MEDIA_FIELDS = frozenset({"url", "data", "image", "images", "image_url", "b64_json", "multimodal_data"})
MEDIA_LENGTH = 200
LEFT_OUT = "..."
ANSWER_FIELDS = ("content", "reasoning_content")


Pieces = Callable[[StreamEvent], Iterable[tuple[str, str]]]


class KeptTexts:
    """The texts of one request, growing until its end."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._is_cut = False
        self._room_bytes = HALF_BYTES
        self._asked = self._excerpt(body, 0)
        self._room_bytes = HALF_BYTES
        self._answered: dict[str, list[str]] = {}
        self.pieces: Pieces = chat_pieces
        """Finds the texts of an event; set where a family of routes has events of its own."""

    def observe(self, event: StreamEvent) -> None:
        """Take a piece of the answer."""
        if event.kind == "model":
            for name, text in self.pieces(event):
                if kept := self._cut(text):
                    self._answered.setdefault(name, []).append(kept)

    def result(self) -> RequestTexts:
        """The texts as they are now."""
        answered = {name: redact_text("".join(parts)) for name, parts in self._answered.items()}
        return RequestTexts(self._asked, answered, self._is_cut)

    def _excerpt(self, value: Any, depth: int, field: str = "") -> Any:
        self._room_bytes -= VALUE_BYTES
        if depth > MOST_DEPTH or self._room_bytes <= 0:
            self._is_cut = True
            return LEFT_OUT
        if isinstance(value, str):
            return self._text(value, field)
        if isinstance(value, Mapping):
            return {
                self._cut(name): self._excerpt(part, depth + 1, name)
                for name, part in self._most(value.items())
            }
        if isinstance(value, list):
            return [self._excerpt(part, depth + 1, field) for part in self._most(value)]
        return value

    def _most(self, values: Iterable[Any]) -> Iterable[Any]:
        for value in values:
            if self._room_bytes <= 0:
                self._is_cut = True
                return
            yield value

    def _text(self, text: str, field: str) -> str:
        if field in MEDIA_FIELDS and len(text) > MEDIA_LENGTH:
            return f"<{len(text)} characters of data>"
        return redact_text(self._cut(text))

    def _cut(self, text: str) -> str:
        """As much of a text as there is room for."""
        room = max(0, self._room_bytes)
        data = text[:room].encode("utf-8", "replace")
        self._room_bytes -= len(data)
        if len(data) <= room and len(text) <= room:
            return data.decode()
        self._is_cut = True
        return data[:room].decode("utf-8", "ignore") + (LEFT_OUT if room else "")


def chat_pieces(event: StreamEvent) -> Iterable[tuple[str, str]]:
    """The named texts that an event of a chat or a plain completion adds to the answer."""
    for choice in choices_of(event.data):
        index = index_of(choice)
        for name, text in _pieces(choice):
            yield (f"{name}[{index}]" if index else name), text


def _pieces(choice: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """The named texts that a chunk adds to a choice."""
    delta = delta_of(choice)
    for name in ANSWER_FIELDS:
        if isinstance(delta.get(name), str):
            yield name, delta[name]
    if isinstance(choice.get("text"), str):
        yield "content", choice["text"]
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        for part in ("name", "arguments"):
            if isinstance(function, Mapping) and isinstance(function.get(part), str):
                yield "tool_calls", function[part]
