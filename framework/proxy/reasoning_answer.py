"""Reasoning in the answer of a chat: its two forms, and answers that are reasoning only (08 §11). Pure.

Stands between the instance's events and the client's answer, streamed or collected. Text only grows: what was
passed on is never taken back. An event in which nothing changes goes on as it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from framework.proxy.errors import ProxyError
from framework.proxy.fields import flag, wrong
from framework.proxy.inline_tags import InlineTags
from framework.proxy.stream_events import StreamEvent, choices_of, delta_of, index_of

Output = Literal["split", "inline"]
OPEN, CLOSE = "<think>", "</think>"
REASONING = "reasoning_content"


@dataclass(frozen=True)
class ReasoningForm:
    """How a client wants it. `promote`: an answer that is reasoning only is given as content, too."""

    output: Output = "split"
    promote: bool = True
    extract: bool = True
    """Whether a block of tags at the head of the content is taken for reasoning."""


def reasoning_form(body: Mapping[str, Any]) -> ReasoningForm:
    """The form that a body asks for. Raises ProxyError `invalid_body`."""
    output = body.get("reasoning_output") or "split"
    if output not in ("split", "inline"):
        raise wrong("reasoning_output", '"split" or "inline"')
    split = output == "split"
    return ReasoningForm(
        "split" if split else "inline",
        _switch(body, "promote_reasoning_only", default=split),
        split and _switch(body, "extract_inline_reasoning", default=True),
    )


@dataclass
class _Choice:
    """What is known of one choice of the answer."""

    tags: InlineTags | None
    reasoning: list[str] = field(default_factory=list)
    has_content: bool = False
    has_calls: bool = False
    is_open: bool = False
    """Inline: whether a block is open."""
    is_finished: bool = False
    is_cut_off: bool = False


class ReasoningView:
    """Events of one answer on their way to the client. Memory is bounded by `limit_bytes` of reasoning."""

    def __init__(self, form: ReasoningForm, *, limit_bytes: int) -> None:
        self._form = form
        self._room_bytes = limit_bytes
        self._choices: dict[int, _Choice] = {}
        self._last: dict[str, Any] = {}
        self._settled: set[int] = set()
        """Choices in which nothing will change: split, with content, and no tag to be looked for."""

    @property
    def is_cut_off(self) -> bool:
        """Whether a limit ended a choice that had nothing but reasoning."""
        return any(choice.is_cut_off for choice in self._choices.values())

    def take(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """What becomes of events that came together. Raises ProxyError when there is too much of it."""
        if self._settled and all(map(self._is_settled, events)):
            return events
        return [changed for event in events for changed in self._one(event)]

    def finish(self) -> list[StreamEvent]:
        """What is still to be said of choices that had no finish reason."""
        rest = [(i, self._end(choice, None)) for i, choice in self._choices.items() if not choice.is_finished]
        return [self._own(index, delta) for index, delta in rest if delta]

    def _is_settled(self, event: StreamEvent) -> bool:
        """Whether nothing can change in an event: most of an answer, for which this must cost little."""
        choices = event.data.get("choices")
        if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
            return False
        index = choices[0].get("index")
        return type(index) is int and index in self._settled

    def _one(self, event: StreamEvent) -> list[StreamEvent]:
        if event.kind != "model":
            return [event]
        before: list[StreamEvent] = []
        is_changed = False
        self._last = event.data
        for choice in choices_of(event.data):
            index = index_of(choice)
            known = self._choices.get(index)
            if known is None:
                tags = InlineTags() if self._form.extract else None
                known = self._choices[index] = _Choice(tags)
            is_changed = self._piece(known, delta_of(choice)) or is_changed
            if known.has_content and known.tags is None and self._form.output == "split":
                self._settled.add(index)
            reason = choice.get("finish_reason")
            if isinstance(reason, str) and reason and not known.is_finished:
                known.is_finished = True
                end = self._end(known, reason)
                if end and _has_text(delta_of(choice)):
                    is_changed = True
                    choice["delta"] = _joined(delta_of(choice), end)
                elif end:
                    before.append(self._own(index, end))
        if is_changed:
            event.payload = orjson.dumps(event.data)
        return [*before, event]

    def _piece(self, known: _Choice, delta: dict[str, Any]) -> bool:
        """Take in a delta, and change it as the form wants; whether it was changed."""
        thought, said = delta.get(REASONING), delta.get("content")
        if delta.get("tool_calls"):
            known.has_calls = True
        is_changed = False
        if isinstance(thought, str) and thought:
            self._keep(known, thought)
            known.tags = None
        elif isinstance(said, str) and said and known.tags is not None:
            is_changed = self._sort(known, delta, said)
            thought, said = delta.get(REASONING), delta.get("content")
        if isinstance(said, str) and said:
            known.has_content = True
        if self._form.output == "inline" and (thought or said):
            return _inline(known, delta, thought, said)
        return is_changed

    def _sort(self, known: _Choice, delta: dict[str, Any], said: str) -> bool:
        """Take tags out of a piece of content; whether that changed it."""
        assert known.tags is not None
        thought, text = known.tags.feed(said)
        if known.tags.is_decided_plain:
            known.tags = None
        if thought:
            self._keep(known, thought)
        return _replace(delta, thought, text, said)

    def _keep(self, known: _Choice, thought: str) -> None:
        self._room_bytes -= len(thought)
        if self._room_bytes < 0:
            raise ProxyError("upstream_protocol_error", "The engine's reasoning is too large to be kept.")
        known.reasoning.append(thought)

    def _end(self, known: _Choice, reason: str | None) -> dict[str, Any]:
        """The delta that comes before the end of a choice, empty for none."""
        delta: dict[str, Any] = {}
        if known.tags is not None:
            thought, text = known.tags.finish()
            if thought:
                self._keep(known, thought)
                delta[REASONING] = thought
            if text:
                known.has_content = True
                delta["content"] = text
            known.tags = None
        thoughts = "".join(known.reasoning)
        is_only = bool(thoughts) and not known.has_content and not known.has_calls
        known.is_cut_off = is_only and reason == "length"
        promoted = thoughts if is_only and self._form.promote and reason != "length" else ""
        if self._form.output == "split":
            return {**delta, "content": promoted} if promoted else delta
        if known.is_open:
            known.is_open = False
            return {"content": CLOSE + promoted}
        return delta

    def _own(self, index: int, delta: dict[str, Any]) -> StreamEvent:
        """An event of ours that belongs to the same answer."""
        names = ("id", "object", "created", "model", "system_fingerprint")
        frame = {name: self._last[name] for name in names if name in self._last}
        data = {**frame, "choices": [{"index": index, "delta": delta, "finish_reason": None}]}
        return StreamEvent("model", orjson.dumps(data), data)


def _inline(known: _Choice, delta: dict[str, Any], thought: object, said: object) -> bool:
    """One text with tags; a run of reasoning is one block."""
    text = ""
    if isinstance(thought, str) and thought:
        text += thought if known.is_open else OPEN + thought
        known.is_open = True
    if isinstance(said, str) and said:
        text += CLOSE + said if known.is_open else said
        known.is_open = False
    is_changed = text != said or REASONING in delta
    delta.pop(REASONING, None)
    delta["content"] = text
    return is_changed


def _replace(delta: dict[str, Any], thought: str, text: str, said: str) -> bool:
    if not thought and text == said:
        return False
    del delta["content"]
    if thought:
        delta[REASONING] = thought
    if text:
        delta["content"] = text
    return True


def _has_text(delta: Mapping[str, Any]) -> bool:
    return bool(delta.get("content") or delta.get(REASONING))


def _joined(delta: Mapping[str, Any], end: Mapping[str, Any]) -> dict[str, Any]:
    """A delta with a piece and the end of the choice: what was held back comes behind the piece."""
    return {**delta, **{name: (delta.get(name) or "") + text for name, text in end.items()}}


def _switch(body: Mapping[str, Any], name: str, *, default: bool) -> bool:
    return flag(body, name) if body.get(name) is not None else default
