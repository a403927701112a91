"""The streams of llama-server's own `/completion` and `/infill` (12 §6). Pure.

Nothing marks their end but the last event of every choice. `response_fields` picks fields of that event,
which the endpoint itself has to read, so it is kept from the instance and carried out here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from framework.proxy.errors import ProxyError, envelope
from framework.proxy.relay import as_it_came, sse
from framework.proxy.stream_events import StreamEvent, StreamState, index_of, read_event
from framework.proxy.usage import count

STOP_REASONS: Mapping[str, str] = {"eos": "stop", "word": "stop", "limit": "length", "none": "stop"}
"""The engine's words for the end of an answer, and ours."""
PROBABILITIES = "completion_probabilities"


def read_engine_event(payload: bytes) -> StreamEvent | None:
    """The event of a payload, None for one that is to be skipped."""
    event = read_event(payload)
    if event is not None and event.kind not in ("error", "done"):
        event.kind = "progress" if "prompt_progress" in event.data else "model"
    return event


def engine_pieces(event: StreamEvent) -> Iterable[tuple[str, str]]:
    """The named texts that an event adds to the answer."""
    text = event.data.get("content")
    if isinstance(text, str):
        index = index_of(event.data)
        yield (f"content[{index}]" if index else "content"), text


@dataclass
class EngineState(StreamState):
    """What the events so far have told."""

    def observe(self, event: StreamEvent) -> None:
        """Take an event into account."""
        data = event.data
        if event.kind != "model":
            return
        self.opened = True
        index = index_of(data)
        if data.get("stop") is not True:
            self.finish.setdefault(index, None)
            self.pieces += 1
            return
        self.finish[index] = STOP_REASONS.get(str(data.get("stop_type")), "stop")
        timings = data.get("timings")
        self.timings = timings if isinstance(timings, dict) else self.timings
        prompt, generated = count(data, "tokens_evaluated") or 0, count(data, "tokens_predicted") or 0
        found = {
            "prompt_tokens": prompt,
            "completion_tokens": generated,
            "total_tokens": prompt + generated,
        }
        cached = count(self.timings, "cache_n")
        details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
        self.usages.append({**found, **details})


@dataclass(frozen=True)
class EngineFrame:
    """What of the last event is not the instance's. `fields` are `response_fields`, empty for all."""

    asked_model: str
    fields: Sequence[str] = ()

    def last(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The last event of a choice as the client gets it."""
        named = {**data, "model": self.asked_model} if "model" in data else dict(data)
        if not self.fields:
            return named
        found = {path: _lookup(named, path) for path in self.fields}
        return {path: values[0] for path, values in found.items() if values}


class EngineStream:
    """A streamed completion between instance and client."""

    def __init__(
        self, state: EngineState, frame: EngineFrame, *, request_id: str, wants_progress: bool
    ) -> None:
        self._state = state
        self._frame = frame
        self._request_id = request_id
        self._wants_progress = wants_progress

    def take(self, event: StreamEvent) -> bytes:
        """What an event becomes."""
        if event.kind == "progress":
            return sse(as_it_came(event)) if self._wants_progress else b""
        if event.data.get("stop") is True:
            return sse(orjson.dumps(self._frame.last(event.data)))
        return sse(as_it_came(event))

    def finish(self) -> bytes:
        """Nothing: the last event of the instance ends the stream."""
        return b""

    def fail(self, error: ProxyError) -> bytes:
        """The error as an event; nothing follows it (12 §4.6)."""
        return sse(envelope(error, self._request_id))

    def cancelled(self) -> bytes:
        """A last event for every choice that had none."""
        open_choices = [index for index, reason in self._state.finish.items() if not reason] or [0]
        return b"".join(sse(orjson.dumps(self._stopped(index))) for index in sorted(open_choices))

    def _stopped(self, index: int) -> dict[str, Any]:
        return {
            "index": index,
            "content": "",
            "stop": True,
            "model": self._frame.asked_model,
            "stop_type": "none",
            "cancelled": True,
        }


class _Choice:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.tokens: list[Any] = []
        self.probabilities: list[Any] = []
        self.last: dict[str, Any] = {}

    def add(self, data: Mapping[str, Any]) -> None:
        if isinstance(data.get("content"), str):
            self.texts.append(data["content"])
        for kept, name in ((self.tokens, "tokens"), (self.probabilities, PROBABILITIES)):
            if isinstance(data.get(name), list):
                kept.extend(data[name])
        if data.get("stop") is True:
            self.last = dict(data)

    def result(self, *, with_tokens: bool) -> dict[str, Any]:
        found = {**self.last, "content": "".join(self.texts), "tokens": self.tokens if with_tokens else []}
        return {**found, PROBABILITIES: self.probabilities} if self.probabilities else found


class WholeCompletion:
    """The completion of a client that wants no stream; of several choices a list of them."""

    def __init__(self, frame: EngineFrame, *, with_tokens: bool, limit_bytes: int) -> None:
        self._frame = frame
        self._with_tokens = with_tokens
        self._room_bytes = limit_bytes
        self._choices: dict[int, _Choice] = {}

    def take(self, event: StreamEvent) -> None:
        """Add an event."""
        if event.kind != "model":
            return
        self._room_bytes -= len(event.payload)
        if self._room_bytes < 0:
            raise ProxyError("upstream_protocol_error", "The engine's answer is too large to be collected.")
        self._choices.setdefault(index_of(event.data), _Choice()).add(event.data)

    def result(self) -> Any:
        """The completion."""
        found = [
            self._frame.last(choice.result(with_tokens=self._with_tokens))
            for _, choice in sorted(self._choices.items())
        ]
        return found[0] if len(found) == 1 else found


def _lookup(data: Mapping[str, Any], path: str) -> list[Any]:
    """The value at a path of names joined by `/`, in a list; an empty list where there is none."""
    value: Any = data
    for name in path.split("/"):
        if not isinstance(value, Mapping) or name not in value:
            return []
        value = value[name]
    return [value]
