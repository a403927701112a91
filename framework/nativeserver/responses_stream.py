"""The output of a streamed response as events: items open and close one after the other (12 §9.4).

Called by responses.
"""

from __future__ import annotations

from typing import Any

from framework.chat.deltas import Delta
from framework.chat.reply import ToolCall
from framework.nativeserver.chat_run import ChatRun, ReplyStream
from framework.nativeserver.core import Result
from framework.nativeserver.events import Event
from framework.nativeserver.responses_items import call_item, message_item, reasoning_item, text_part
from framework.nativeserver.tool_ids import new_item_id


class _OpenItem:
    """The item that is written at the moment."""

    def __init__(self, kind: str, item_id: str, call: ToolCall | None = None) -> None:
        self.kind = kind
        self.id = item_id
        self.call = call
        self.pieces: list[str] = []

    def begun(self) -> dict[str, Any]:
        if self.call is not None:
            return call_item(self.id, self.call, is_begun=True)
        return reasoning_item(self.id, None) if self.kind == "reasoning" else message_item(self.id, None)

    def finished(self) -> dict[str, Any]:
        text = "".join(self.pieces)
        if self.call is not None:
            return call_item(self.id, ToolCall(self.call.name, text, self.call.call_id))
        return reasoning_item(self.id, text) if self.kind == "reasoning" else message_item(self.id, text)


class OutputStream:
    """Events of the output of one response."""

    def __init__(self, run: ChatRun) -> None:
        self._reply = ReplyStream(run)
        self._open: _OpenItem | None = None
        self.items: list[dict[str, Any]] = []
        """Those that are finished."""

    def add(self, result: Result) -> list[Event]:
        """What a partial brought; the final closes what is open."""
        events: list[Event] = []
        for delta in self._reply.feed(result):
            events += self._about(delta)
        if result.kind != "partial":
            if self._open is None and not self.items:
                events += self._opened(_OpenItem("message", new_item_id("msg")))
            events += self._closed()
        return events

    def _about(self, delta: Delta) -> list[Event]:
        kind = "call" if delta.call_index >= 0 else "message" if delta.content else "reasoning"
        events: list[Event] = []
        if self._open is None or self._open.kind != kind or delta.call_name:
            events += [*self._closed(), *self._opened(self._new_item(kind, delta))]
        text = delta.content or delta.reasoning or delta.arguments
        if text and self._open is not None:
            self._open.pieces.append(text)
            name = {
                "call": "response.function_call_arguments.delta",
                "message": "response.output_text.delta",
                "reasoning": "response.reasoning_text.delta",
            }[kind]
            events.append(self._of_item(name, delta=text))
        return events

    def _new_item(self, kind: str, delta: Delta) -> _OpenItem:
        if kind == "call":
            call = ToolCall(delta.call_name, "", self._reply.call_id(delta))
            return _OpenItem(kind, new_item_id("fc"), call)
        return _OpenItem(kind, new_item_id("rs" if kind == "reasoning" else "msg"))

    def _opened(self, item: _OpenItem) -> list[Event]:
        self._open = item
        events = [self._event("response.output_item.added", item=item.begun())]
        if item.kind == "message":
            part = {**text_part("")}
            events.append(self._of_item("response.content_part.added", part=part))
        return events

    def _closed(self) -> list[Event]:
        item = self._open
        if item is None:
            return []
        events = []
        if item.kind == "message":
            text = "".join(item.pieces)
            events.append(self._of_item("response.output_text.done", text=text))
            events.append(self._of_item("response.content_part.done", part=text_part(text)))
        finished = item.finished()
        events.append(self._event("response.output_item.done", item=finished))
        self.items.append(finished)
        self._open = None
        return events

    def _of_item(self, name: str, **more: Any) -> Event:
        """An event about the open item."""
        assert self._open is not None
        place = {} if self._open.kind == "call" else {"content_index": 0}
        return self._event(name, item_id=self._open.id, **place, **more)

    def _event(self, name: str, **more: Any) -> Event:
        return Event({"type": name, "output_index": len(self.items), **more}, name)
