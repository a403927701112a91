"""A streamed message as Anthropic's events: blocks open and close one after the other (12 §10.4).

Called by anthropic.
"""

from __future__ import annotations

from typing import Any

from framework.chat.deltas import Delta
from framework.nativeserver.chat_run import ChatRun, ReplyStream
from framework.nativeserver.core import Result
from framework.nativeserver.events import Event

_EMPTY_BLOCKS: dict[str, dict[str, Any]] = {
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
    "text": {"type": "text", "text": ""},
}


class BlockStream:
    """Events of the blocks of one message."""

    def __init__(self, run: ChatRun) -> None:
        self._reply = ReplyStream(run)
        self._open = ""
        """Kind of the open block; empty: none is."""
        self._index = -1

    @property
    def has_calls(self) -> bool:
        """Whether a call has begun."""
        return self._reply.has_calls

    def add(self, result: Result) -> list[Event]:
        """What a partial brought; the final closes what is open."""
        events: list[Event] = []
        for delta in self._reply.feed(result):
            events += self._about(delta)
        return events if result.kind == "partial" else events + self._closed()

    def _about(self, delta: Delta) -> list[Event]:
        kind = "tool_use" if delta.call_index >= 0 else "text" if delta.content else "thinking"
        events: list[Event] = []
        if kind != self._open or delta.call_name:
            events += [*self._closed(), self._opened(kind, delta)]
        if kind == "tool_use" and delta.arguments:
            events.append(self._delta({"type": "input_json_delta", "partial_json": delta.arguments}))
        elif kind == "text":
            events.append(self._delta({"type": "text_delta", "text": delta.content}))
        elif kind == "thinking":
            events.append(self._delta({"type": "thinking_delta", "thinking": delta.reasoning}))
        return events

    def _opened(self, kind: str, delta: Delta) -> Event:
        self._open = kind
        self._index += 1
        block = _EMPTY_BLOCKS.get(kind)
        if block is None:
            block = {"type": kind, "id": self._reply.call_id(delta), "name": delta.call_name, "input": {}}
        return self._event("content_block_start", content_block=block)

    def _closed(self) -> list[Event]:
        if not self._open:
            return []
        events = [self._event("content_block_stop")]
        if self._open == "thinking":
            events.insert(0, self._delta({"type": "signature_delta", "signature": ""}))
        self._open = ""
        return events

    def _delta(self, delta: dict[str, Any]) -> Event:
        return self._event("content_block_delta", delta=delta)

    def _event(self, name: str, **more: Any) -> Event:
        return Event({"type": name, "index": self._index, **more}, name)
