"""The stream of Anthropic's Messages API: what its events tell and how they reach a client (12 §10). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.proxy.anthropic_errors import anthropic_error
from framework.proxy.errors import ProxyError
from framework.proxy.named_events import encoded, event_type, object_of, passed_on, read_named
from framework.proxy.stream_events import StreamEvent, StreamState, index_of
from framework.proxy.usage import count

OPENINGS = frozenset({"message_start", "ping"})
STOP_REASONS: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
}
"""Their words for the end of an answer, and ours, which the request log keeps."""
TEXTS: Mapping[str, tuple[str, str]] = {
    "text_delta": ("text", "content"),
    "thinking_delta": ("thinking", "reasoning_content"),
    "input_json_delta": ("partial_json", "tool_calls"),
}
"""Kind of a delta: the field with its text, and what the request log calls it."""


def read_message_event(payload: bytes) -> StreamEvent | None:
    """The event of a payload, None for one that is to be skipped."""
    return read_named(payload, OPENINGS)


def message_pieces(event: StreamEvent) -> Iterable[tuple[str, str]]:
    """The named texts that an event adds to the answer."""
    delta = object_of(event.data, "delta")
    source, name = TEXTS.get(event_type(delta), ("", ""))
    if isinstance(delta.get(source), str):
        yield name, delta[source]


@dataclass
class MessagesState(StreamState):
    """What the events so far have told."""

    counts: dict[str, Any] = field(default_factory=dict)
    """Token counts in Anthropic's words: of the start, then of the end."""

    def observe(self, event: StreamEvent) -> None:
        """Take an event into account."""
        data = event.data
        kind = event_type(data)
        self.opened = self.opened or event.kind == "model"
        if kind == "message_start":
            self.last = object_of(data, "message")
            # An attempt that is repeated starts anew.
            self.counts = dict(object_of(self.last, "usage"))
        elif kind == "content_block_delta":
            self.pieces += 1
            self.finish.setdefault(0, None)
        elif kind == "message_delta":
            self.counts.update(object_of(data, "usage"))
            reason = object_of(data, "delta").get("stop_reason")
            if isinstance(reason, str):
                self.finish[0] = STOP_REASONS.get(reason, reason)
        self.done = self.done or kind == "message_stop"
        timings = data.get("timings")
        self.timings = timings if isinstance(timings, dict) else self.timings
        self.usages = [usage_of(self.counts)] if self.counts else []

    @property
    def lacks_prompt(self) -> bool:
        """As its base: where the start of the message was left out."""
        return self.opened and count(self.counts, "input_tokens") is None

    def note_prompt(self, tokens: int | None) -> None:
        """As its base."""
        if tokens is not None:
            self.counts["input_tokens"] = tokens
            self.usages = [usage_of(self.counts)]


def usage_of(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Anthropic's counts in OpenAI's words: there the prompt holds what came out of the cache, too."""
    cached = count(counts, "cache_read_input_tokens") or 0
    written = count(counts, "cache_creation_input_tokens") or 0
    generated = count(counts, "output_tokens") or 0
    if count(counts, "input_tokens") is None:
        # An answer whose first token gives no text begins without its counts.
        return {"completion_tokens": generated}
    prompt = (count(counts, "input_tokens") or 0) + cached + written
    return {
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def stopped_by_sequence(delta: Any) -> bool:
    """Whether a stop sequence ended the message, which llama-server calls `end_turn`; put right then."""
    is_so = isinstance(delta, dict) and isinstance(delta.get("stop_sequence"), str)
    if is_so:
        delta["stop_reason"] = "stop_sequence"
    return is_so


class MessagesStream:
    """A streamed message between instance and client. `state` is shared with the driver."""

    def __init__(self, state: MessagesState, *, asked_model: str, request_id: str) -> None:
        self._state = state
        self._asked_model = asked_model
        self._request_id = request_id
        self._start: dict[str, Any] | None = None
        self._is_begun = False
        self._open_block: int | None = None
        self._is_over = False

    def take(self, event: StreamEvent) -> bytes:
        """What an event becomes; the start of the message waits for the first piece of it."""
        kind = event_type(event.data)
        if kind == "message_start":
            self._start = event.data
            return b""
        if event.kind == "progress":
            return passed_on(event) if self._is_begun else b""
        if kind == "content_block_start":
            self._open_block = index_of(event.data)
        elif kind == "content_block_stop":
            self._open_block = None
        self._is_over = kind == "message_stop"
        if kind == "message_delta" and stopped_by_sequence(event.data.get("delta")):
            return self._begun() + encoded(event.data)
        return self._begun() + passed_on(event)

    def finish(self) -> bytes:
        """The end mark, where the instance left it out."""
        return b"" if self._is_over else self._begun() + encoded({"type": "message_stop"})

    def fail(self, error: ProxyError) -> bytes:
        """An error event; nothing follows it."""
        return encoded(anthropic_error(error, self._request_id))

    def cancelled(self) -> bytes:
        """The end of a message that was stopped by command: what is open is closed."""
        closed = b""
        if self._open_block is not None:
            closed = encoded({"type": "content_block_stop", "index": self._open_block})
        generated = count(self._state.counts, "output_tokens") or self._state.pieces
        end = {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": generated},
            "cancelled": True,
        }
        return self._begun() + closed + encoded(end) + encoded({"type": "message_stop"})

    def _begun(self) -> bytes:
        """The start of the message, once."""
        if self._is_begun:
            return b""
        self._is_begun = True
        start = self._start or {"type": "message_start", "message": self._own_message()}
        if isinstance(start.get("message"), dict):
            start["message"]["model"] = self._asked_model
        return encoded(start)

    def _own_message(self) -> dict[str, Any]:
        return {
            "id": self._request_id,
            "type": "message",
            "role": "assistant",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
