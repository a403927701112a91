"""An instance's chunks as the client of a stream gets them (08 §7.1, §7.3-7.6, §12.4). Pure: bytes out.

Chunks go on as the bytes they came in, unless something in them has to change. Changed or held back:
- `model` becomes the name that the client asked for;
- a role is announced once, together with the first piece of the answer;
- prompt progress goes only to a client that asked for it;
- the closing chunk (no choices, usage and timings) goes to a client that asked for usage; for any other the
  timings stand on the finish chunk, where the engine itself puts them, since such clients read `choices[0]`
  of every chunk (cases PX-08).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import orjson

from framework.proxy.errors import ProxyError, envelope
from framework.proxy.stream_events import (
    DONE,
    StreamEvent,
    StreamState,
    choices_of,
    delta_of,
    index_of,
    is_role_only,
)
from framework.proxy.usage import backfill

Flavour = Literal["chat", "completion"]
CHUNK_OBJECTS: Mapping[Flavour, str] = {"chat": "chat.completion.chunk", "completion": "text_completion"}


def sse(payload: bytes) -> bytes:
    """One server-sent event. The payload must be free of line breaks, as the encoder's output is."""
    return b"data: " + payload + b"\n\n"


def as_it_came(event: StreamEvent) -> bytes:
    """The very bytes of an event, re-encoded only when line breaks between JSON tokens would split it."""
    if b"\n" in event.payload or b"\r" in event.payload:
        return orjson.dumps(event.data)
    return event.payload


class Relay:
    """State of one streamed answer between instance and client. `state` is shared with the driver."""

    def __init__(
        self,
        state: StreamState,
        *,
        flavour: Flavour,
        asked_model: str,
        request_id: str,
        wants_usage: bool,
        wants_progress: bool,
    ) -> None:
        self._state = state
        self._flavour = flavour
        self._asked_model = asked_model
        self._request_id = request_id
        self._wants_usage = wants_usage
        self._wants_progress = wants_progress
        # Not the driver's mark: that counts in all events which arrived together before any is taken here.
        self._opened = False
        self._roles_sent: set[int] = set()
        self._held_roles: dict[int, dict[str, Any]] = {}
        self._held_finish: dict[str, Any] | None = None

    def take(self, event: StreamEvent) -> bytes:
        """What the client gets for a progress, frame or model event; often nothing yet."""
        if event.kind == "progress":
            return self._take_progress(event)
        self._opened = True
        if event.kind == "frame":
            return self._flush_finish() + sse(as_it_came(event))
        return self._take_model(event)

    def finish(self) -> bytes:
        """The rest of a stream that ended normally: held chunks, closing chunk, end mark."""
        if self._held_finish is not None and self._state.timings:
            self._held_finish.setdefault("timings", self._state.timings)
        closing = self._closing_chunk() if self._wants_usage else b""
        return self._flush_finish() + closing + sse(DONE)

    def fail(self, error: ProxyError) -> bytes:
        """The end of a stream whose headers are out: the error as an event, then the end mark (08 §7.6)."""
        return self._flush_finish() + sse(envelope(error, self._request_id)) + sse(DONE)

    def cancelled(self) -> bytes:
        """The end after a cancel by command: finish chunk, closing chunk, end mark (08 §4.5)."""
        flushed = self._flush_finish()
        open_choices = [i for i, reason in self._state.finish.items() if not reason]
        if not self._state.finish:
            open_choices = [0]
        choices = [self._stopped_choice(index) for index in sorted(open_choices)]
        finish = self._own_chunk({"choices": choices}) if choices else b""
        return flushed + finish + self._closing_chunk(cancelled=True) + sse(DONE)

    def _take_progress(self, event: StreamEvent) -> bytes:
        role_only = is_role_only(event.data)
        if role_only:
            self._hold_role(event.data)
        sent = self._flush_roles() if self._opened else b""
        if "prompt_progress" not in event.data or not self._wants_progress:
            return sent
        if role_only:
            for choice in choices_of(event.data):
                delta_of(choice).pop("role")
        return sent + sse(self._renamed(event, changed=role_only))

    def _take_model(self, event: StreamEvent) -> bytes:
        data = event.data
        choices = choices_of(data)
        if not choices and (data.get("usage") or data.get("timings")):
            # Its numbers are in `state`; `finish` gives them their place.
            return b""
        changed = self._drop_repeated_roles(choices)
        before = self._flush_roles() + self._flush_finish()
        if self._wants_usage and "usage" in data:
            # Of a plain completion: the closing chunk carries it, and a client must not count it twice.
            del data["usage"]
            changed = True
        if not self._wants_usage and any(choice.get("finish_reason") for choice in choices):
            self._held_finish = data
            return before
        return before + sse(self._renamed(event, changed=changed))

    def _hold_role(self, data: Mapping[str, Any]) -> None:
        """Keep the announcement of each choice that has none yet, without the progress it came with."""
        plain = {name: value for name, value in data.items() if name != "prompt_progress"}
        for choice in choices_of(data):
            index = index_of(choice)
            if index not in self._roles_sent:
                copy = {**choice, "delta": dict(delta_of(choice))}
                # The newest: after a retry the answer has another id.
                self._held_roles[index] = {**plain, "choices": [copy]}

    def _flush_roles(self) -> bytes:
        if not self._held_roles:
            return b""
        held, self._held_roles = self._held_roles, {}
        self._roles_sent.update(held)
        return b"".join(self._own_encoding(data) for data in held.values())

    def _drop_repeated_roles(self, choices: list[dict[str, Any]]) -> bool:
        changed = False
        for choice in choices:
            delta = delta_of(choice)
            if "role" not in delta:
                continue
            index = index_of(choice)
            if index in self._roles_sent or index in self._held_roles:
                del delta["role"]
                changed = True
            else:
                self._roles_sent.add(index)
        return changed

    def _flush_finish(self) -> bytes:
        held, self._held_finish = self._held_finish, None
        return self._own_encoding(held) if held is not None else b""

    def _closing_chunk(self, *, cancelled: bool = False) -> bytes:
        closing: dict[str, Any] = {"choices": []}
        usage = backfill(self._state.usage, self._state.timings)
        if self._wants_usage and usage:
            closing["usage"] = usage
        if self._state.timings:
            closing["timings"] = self._state.timings
        if cancelled:
            closing["cancelled"] = True
        return self._own_chunk(closing)

    def _stopped_choice(self, index: int) -> dict[str, Any]:
        nothing: dict[str, Any] = {"delta": {}} if self._flavour == "chat" else {"text": ""}
        return {"index": index, **nothing, "finish_reason": "stop"}

    def _own_chunk(self, fields: Mapping[str, Any]) -> bytes:
        """A chunk of ours that belongs to the same answer as the instance's."""
        own = {"id": self._request_id, "object": CHUNK_OBJECTS[self._flavour], "model": self._asked_model}
        kept = {n: v for n, v in self._state.last.items() if n in (*own, "created", "system_fingerprint")}
        return self._own_encoding({**own, **kept, **fields})

    def _own_encoding(self, data: dict[str, Any]) -> bytes:
        if "model" in data:
            data["model"] = self._asked_model
        return sse(orjson.dumps(data))

    def _renamed(self, event: StreamEvent, *, changed: bool) -> bytes:
        """The payload of an event under the asked model name; the bytes that came when nothing changes."""
        data = event.data
        if data.get("model", self._asked_model) != self._asked_model:
            data["model"] = self._asked_model
        elif not changed:
            return as_it_came(event)
        return orjson.dumps(data)
