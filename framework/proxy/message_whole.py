"""The events of a streamed message joined into one (08 §7.8, for the Messages API). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from framework.proxy.errors import ProxyError
from framework.proxy.messages_events import MessagesState, stopped_by_sequence
from framework.proxy.named_events import event_type, object_of
from framework.proxy.stream_events import StreamEvent, index_of

JOINED: Mapping[str, tuple[str, str]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}
"""Kind of a delta: its field, and the field of the block that it adds to."""


@dataclass
class _Block:
    fields: dict[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)

    def result(self) -> dict[str, Any]:
        joined: dict[str, Any] = {name: "".join(pieces) for name, pieces in self.pieces.items()}
        if "input" in joined:
            joined["input"] = _arguments(joined["input"])
        return {**self.fields, **joined}


class WholeMessage:
    """One message that grows by events; memory is bounded by the limit."""

    def __init__(self, state: MessagesState, *, asked_model: str, request_id: str, limit_bytes: int) -> None:
        self._request_id = request_id
        self._state = state
        self._asked_model = asked_model
        self._room_bytes = limit_bytes
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, _Block] = {}

    def take(self, event: StreamEvent) -> None:
        """Add an event."""
        self._room_bytes -= len(event.payload)
        if self._room_bytes < 0:
            raise ProxyError("upstream_protocol_error", "The engine's answer is too large to be collected.")
        data = event.data
        kind = event_type(data)
        if kind == "message_start":
            self._message = dict(object_of(data, "message"))
            self._blocks = {}
        elif kind == "content_block_start":
            self._blocks[index_of(data)] = _Block(dict(object_of(data, "content_block")))
        elif kind == "content_block_delta":
            self._add(index_of(data), object_of(data, "delta"))
        elif kind == "message_delta":
            delta = object_of(data, "delta")
            stopped_by_sequence(delta)
            self._message.update(delta)

    def result(self) -> dict[str, Any]:
        """The message."""
        # The engine leaves the start out where the first token gives no text.
        answer = {
            "id": self._request_id,
            "type": "message",
            "role": "assistant",
            **self._message,
            "model": self._asked_model,
            "content": [block.result() for _, block in sorted(self._blocks.items())],
            "usage": {"input_tokens": 0, "output_tokens": 0, **self._state.counts},
        }
        if self._state.timings:
            answer["timings"] = self._state.timings
        return answer

    def _add(self, index: int, delta: dict[str, Any]) -> None:
        source, target = JOINED.get(event_type(delta), ("", ""))
        block = self._blocks.get(index)
        if block is not None and isinstance(delta.get(source), str):
            block.pieces.setdefault(target, []).append(delta[source])


def _arguments(text: str) -> Any:
    """The arguments of a call; those that a limit cut off are none, as `stop_reason` tells."""
    try:
        return orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
