"""The stream of OpenAI's Responses API: its events, what they tell, how they reach a client (12 §9). Pure.

llama-server leaves out what clients need to put the pieces together: the place of an item in the output, of a
part in the item, and the number of an event. They are filled in; whatever an engine tells itself stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from framework.proxy.errors import ProxyError, error_object
from framework.proxy.named_events import encoded, event_type, object_of, read_named
from framework.proxy.stream_events import StreamEvent, StreamState
from framework.proxy.usage import backfill, count

OPENINGS = frozenset({"response.created", "response.in_progress", "response.queued"})
ENDS: Mapping[str, str] = {
    "response.completed": "stop",
    "response.incomplete": "length",
    "response.failed": "error",
}
"""The last event, and how the request log calls that end."""
TEXTS: Mapping[str, str] = {
    "response.output_text.delta": "content",
    "response.reasoning_text.delta": "reasoning_content",
    "response.reasoning_summary_text.delta": "reasoning_content",
    "response.function_call_arguments.delta": "tool_calls",
}
# Events of a part of an item. The engines here write items of one part.
OF_A_PART = ("response.content_part.", "response.output_text.", "response.reasoning_text.")
ECHOED = (
    *("instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "reasoning", "temperature"),
    *("text", "tool_choice", "tools", "top_p", "truncation", "user"),
)
"""Fields of the request that belong to the response."""


EMPTY_RESPONSE: Mapping[str, Any] = {
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "store": False,
    "tool_choice": "auto",
    "tools": [],
}
"""What a response says of itself where nobody says otherwise."""


def read_response_event(payload: bytes) -> StreamEvent | None:
    """The event of a payload, None for one that is to be skipped."""
    return read_named(payload, OPENINGS)


def response_pieces(event: StreamEvent) -> Iterable[tuple[str, str]]:
    """The named texts that an event adds to the answer."""
    name = TEXTS.get(event_type(event.data))
    if name and isinstance(event.data.get("delta"), str):
        yield name, event.data["delta"]


@dataclass
class ResponsesState(StreamState):
    """What the events so far have told."""

    token_limit: int | None = None
    """What the instance was told to write at most; it says `completed` also at that limit (15 §6)."""
    context_limit: int = 0
    """Tokens that prompt and answer share, 0 when unknown; of that end it says the same."""

    def observe(self, event: StreamEvent) -> None:
        """Take an event into account."""
        data = event.data
        kind = event_type(data)
        self.opened = self.opened or event.kind == "model"
        self.pieces += kind in TEXTS
        if response := object_of(data, "response"):
            self.last = response
        if kind in ENDS:
            self.done = True
            if counts := object_of(self.last, "usage"):
                self.usages = [usage_of(counts)]
            self.finish[0] = "length" if self.is_cut else ENDS[kind]
        timings = data.get("timings")
        self.timings = timings if isinstance(timings, dict) else self.timings

    @property
    def is_cut(self) -> bool:
        """Whether a limit of tokens ended the answer."""
        generated = count(self.usage, "completion_tokens")
        if generated is None:
            return False
        is_full = 0 < self.context_limit <= (count(self.usage, "total_tokens") or 0)
        return is_full or (self.token_limit is not None and generated >= self.token_limit)


def usage_of(counts: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of a response in the words of chat completions."""
    prompt, generated = count(counts, "input_tokens") or 0, count(counts, "output_tokens") or 0
    found: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
    }
    if isinstance(details := counts.get("input_tokens_details"), dict):
        found["prompt_tokens_details"] = details
    return found


@dataclass
class ResponseFrame:
    """What of a response does not come from the instance. `created_at` is in Unix seconds."""

    asked: Mapping[str, Any]
    asked_model: str
    created_at: int

    def filled(self, response: Mapping[str, Any], state: ResponsesState) -> dict[str, Any]:
        """A response object under the asked model name, with what was left out."""
        echoed = {name: self.asked[name] for name in ECHOED if self.asked.get(name) is not None}
        frame = {**EMPTY_RESPONSE, "created_at": self.created_at, "output": []}
        found = {**frame, **echoed, **response, "model": self.asked_model}
        if found.get("status") == "completed":
            if state.is_cut:
                found.update(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
            else:
                found.setdefault("completed_at", self.created_at)
        usage = backfill(state.usage, state.timings)
        if found.get("status") != "in_progress" and usage and not found.get("usage"):
            found["usage"] = {
                "input_tokens": usage.get("prompt_tokens", 0),
                "output_tokens": usage.get("completion_tokens", 0),
                "total_tokens": usage.get("total_tokens", 0),
            }
        return found


OPENING_ORDER = ("response.created", "response.in_progress")


class ResponsesStream:
    """A streamed response between instance and client. `state` is shared with the driver."""

    def __init__(self, state: ResponsesState, frame: ResponseFrame, *, request_id: str) -> None:
        self._state = state
        self._frame = frame
        self._request_id = request_id
        self._held: dict[str, dict[str, Any]] = {}
        self._is_begun = False
        self._is_over = False
        self._number = 0
        self._items: dict[str, int] = {}
        self._finished: list[Any] = []

    def take(self, event: StreamEvent) -> bytes:
        """What an event becomes; those that open a response wait for the first piece of it."""
        kind = event_type(event.data)
        if event.kind == "progress" and not self._is_begun:
            if kind == "response.created":
                self._held = {}
            # The newest of each kind: there may be as many as the prompt has batches.
            self._held[kind] = event.data
            return b""
        return self._begun() + self._own(event.data)

    def finish(self) -> bytes:
        """Nothing: the last event of the instance ends the stream."""
        return b""

    def fail(self, error: ProxyError) -> bytes:
        """An error event; nothing follows it."""
        found = error_object(error, self._request_id)
        named = {name: found.get(name) for name in ("code", "message", "param")}
        return self._own({"type": "error", **named, "error": found})

    def cancelled(self) -> bytes:
        """The end of a response that was stopped by command, with the items that were finished."""
        response = {
            "id": self._state.last.get("id", self._request_id),
            "object": "response",
            "status": "cancelled",
            "output": self._finished,
        }
        return self._begun() + self._own({"type": "response.incomplete", "response": response})

    def _begun(self) -> bytes:
        """The events that open the response, once."""
        if self._is_begun:
            return b""
        self._is_begun = True
        # An answer whose first token gives no text comes without them.
        opening = (self._held.get(kind) or self._opening(kind) for kind in OPENING_ORDER)
        return b"".join(map(self._own, opening))

    def _opening(self, kind: str) -> dict[str, Any]:
        response = {"id": self._state.last.get("id", self._request_id), "object": "response"}
        return {"type": kind, "response": {**response, "status": "in_progress"}}

    def _own(self, data: dict[str, Any]) -> bytes:
        kind = event_type(data)
        self._place(kind, data)
        if isinstance(data.get("response"), dict):
            data["response"] = self._frame.filled(data["response"], self._state)
            if kind == "response.completed" and data["response"].get("status") == "incomplete":
                data["type"] = "response.incomplete"
        data.setdefault("sequence_number", self._number)
        self._number += 1
        return encoded(data)

    def _place(self, kind: str, data: dict[str, Any]) -> None:
        """Where in the output an event belongs."""
        item = object_of(data, "item")
        item_id = data.get("item_id") or item.get("id")
        if kind == "response.output_item.added":
            self._items[str(item_id)] = len(self._items)
        elif kind == "response.output_item.done":
            self._finished.append(item)
        if item or "item_id" in data:
            newest = max(0, len(self._items) - 1)
            data.setdefault("output_index", self._items.get(str(item_id), newest))
        if kind.startswith(OF_A_PART):
            data.setdefault("content_index", 0)
        if kind.startswith("response.output_text."):
            data.setdefault("logprobs", [])


class WholeResponse:
    """The response of a client that wants no stream: it comes whole with the last event."""

    def __init__(self, state: ResponsesState, frame: ResponseFrame) -> None:
        self._state = state
        self._frame = frame
        self._response: dict[str, Any] = {}

    def take(self, event: StreamEvent) -> None:
        """Look at an event."""
        if event_type(event.data) in ENDS:
            self._response = object_of(event.data, "response")

    def result(self) -> dict[str, Any]:
        """The response."""
        answer = self._frame.filled(self._response, self._state)
        if self._state.timings:
            answer["timings"] = self._state.timings
        return answer
