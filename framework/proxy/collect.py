"""The chunks of a stream joined into the one answer of a client that wants no stream (08 §7.8). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.proxy.errors import ProxyError
from framework.proxy.relay import Flavour
from framework.proxy.stream_events import StreamEvent, StreamState, choices_of, delta_of, index_of
from framework.proxy.usage import backfill

RESULT_OBJECTS: Mapping[Flavour, str] = {"chat": "chat.completion", "completion": "text_completion"}
JOINED = ("content", "reasoning_content")
# The parts of a chunk that are put together by rules of their own.
OWN_RULES = frozenset({"choices", "object", "model", "usage", "timings", "prompt_progress"})


@dataclass
class _Call:
    fields: dict[str, Any] = field(default_factory=dict)
    function: dict[str, Any] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)

    def result(self) -> dict[str, Any]:
        return {**self.fields, "function": {**self.function, "arguments": "".join(self.arguments)}}


@dataclass
class _Choice:
    texts: dict[str, list[str]] = field(default_factory=dict)
    other: dict[str, Any] = field(default_factory=dict)
    tool_calls: dict[int, _Call] = field(default_factory=dict)
    logprobs: dict[str, Any] | None = None
    finish_reason: str | None = None


class Collector:
    """One answer that grows by events. `state` is shared with the driver; memory is bounded by the limit."""

    def __init__(self, state: StreamState, *, flavour: Flavour, asked_model: str, limit_bytes: int) -> None:
        self._state = state
        self._flavour = flavour
        self._asked_model = asked_model
        self._room_bytes = limit_bytes
        self._fields: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}

    def take(self, event: StreamEvent) -> None:
        """Add an event. Raises ProxyError `upstream_protocol_error` when the answer outgrows the limit."""
        if event.kind not in ("model", "progress"):
            return
        self._room_bytes -= len(event.payload)
        if self._room_bytes < 0:
            raise ProxyError("upstream_protocol_error", "The engine's answer is too large to be collected.")
        self._fields.update({n: v for n, v in event.data.items() if n not in OWN_RULES})
        for chunk in choices_of(event.data):
            self._add(self._choices.setdefault(index_of(chunk), _Choice()), chunk)

    def result(self) -> dict[str, Any]:
        """The answer as one object."""
        build = self._chat_choice if self._flavour == "chat" else self._text_choice
        choices = [build(index, choice) for index, choice in sorted(self._choices.items())]
        answer: dict[str, Any] = {
            **self._fields,
            "object": RESULT_OBJECTS[self._flavour],
            "model": self._asked_model,
            "choices": choices,
        }
        usage = backfill(self._state.usage, self._state.timings)
        if usage:
            answer["usage"] = usage
        if self._state.timings:
            answer["timings"] = self._state.timings
        return answer

    def _add(self, choice: _Choice, chunk: Mapping[str, Any]) -> None:
        if isinstance(chunk.get("finish_reason"), str):
            choice.finish_reason = chunk["finish_reason"]
        if isinstance(chunk.get("logprobs"), dict):
            choice.logprobs = _join_lists(choice.logprobs or {}, chunk["logprobs"])
        pieces = delta_of(chunk) if self._flavour == "chat" else {"text": chunk.get("text")}
        for name, value in pieces.items():
            if name == "tool_calls":
                _merge_calls(choice.tool_calls, value)
            elif isinstance(value, str) and name in (*JOINED, "text"):
                choice.texts.setdefault(name, []).append(value)
            elif value is not None:
                choice.other[name] = value

    def _chat_choice(self, index: int, choice: _Choice) -> dict[str, Any]:
        texts = {name: "".join(pieces) for name, pieces in choice.texts.items()}
        calls = [call.result() for _, call in sorted(choice.tool_calls.items())]
        # A message that only calls tools has no content at all; one that says nothing has an empty one.
        message = {"role": "assistant", "content": None if calls else "", **choice.other, **texts}
        if calls:
            message["tool_calls"] = calls
        return _finished(index, choice, {"message": message})

    def _text_choice(self, index: int, choice: _Choice) -> dict[str, Any]:
        return _finished(index, choice, {"text": "".join(choice.texts.get("text", []))})


def _finished(index: int, choice: _Choice, content: dict[str, Any]) -> dict[str, Any]:
    found = {"index": index, **content, "finish_reason": choice.finish_reason}
    return found if choice.logprobs is None else {**found, "logprobs": choice.logprobs}


def _join_lists(former: dict[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    joined = dict(former)
    for name, value in added.items():
        before = joined.get(name)
        if isinstance(before, list) and isinstance(value, list):
            before.extend(value)
        elif value is not None:
            joined[name] = list(value) if isinstance(value, list) else value
    return joined


def _merge_calls(calls: dict[int, _Call], pieces: object) -> None:
    """Tool calls by their index: identity from the first piece that has it, arguments joined."""
    for piece in pieces if isinstance(pieces, list) else []:
        if not isinstance(piece, dict):
            continue
        call = calls.setdefault(index_of(piece), _Call())
        function = piece.get("function")
        _fill(call.fields, piece, without=("index", "function"))
        if isinstance(function, dict):
            _fill(call.function, function, without=("arguments",))
            if isinstance(function.get("arguments"), str):
                call.arguments.append(function["arguments"])


def _fill(known: dict[str, Any], piece: Mapping[str, Any], *, without: tuple[str, ...]) -> None:
    for name, value in piece.items():
        if name not in without and value is not None:
            known.setdefault(name, value)
