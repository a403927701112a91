"""What came of a request: an answer of the right model, a clear error, or what must not be. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.support.chaos.models import WORDS

OK = 200
DONE = "[DONE]"
# The first four may happen in a storm; the rest never.
Kind = Literal["whole", "error", "broken", "left", "lost", "unclear", "wrong", "twice"]
ALLOWED: tuple[Kind, ...] = ("whole", "error", "broken", "left")
# An error that tells nobody anything.
UNCLEAR = frozenset({"internal_error", "upstream_protocol_error"})


@dataclass(frozen=True)
class Asked:
    """One request; its number shows in the log of the engine that runs it."""

    number: int
    word: str
    """The name of the model, and what it says."""
    tokens: int
    streams: bool


@dataclass(frozen=True)
class Received:
    """All that came back."""

    status: int = 0
    body: bytes = b""
    failure: str = ""
    """How the connection failed; empty when the answer ended by itself."""
    was_down: bool = False
    """Whether `paddock up` was killed or down at any moment meanwhile: then a broken connection is honest."""
    has_left: bool = False
    """Whether the client went away itself."""


@dataclass(frozen=True)
class Verdict:
    """What came of it; `detail` is the code of an error, or what is wrong."""

    kind: Kind
    detail: str = ""


def judge(asked: Asked, received: Received) -> Verdict:
    """What a client makes of an exchange."""
    if not received.status:
        return _cut(received, "no answer")
    if received.status != OK:
        return _refusal(received)
    return _of_stream(asked, received) if asked.streams else _of_body(asked, received)


def _cut(received: Received, seen: str) -> Verdict:
    """The answer did not come to its end."""
    if received.has_left:
        return Verdict("left")
    detail = f"{seen}; {received.failure or 'closed without a word'}"
    return Verdict("broken" if received.was_down else "lost", detail)


def _refusal(received: Received) -> Verdict:
    try:
        error = json.loads(received.body)["error"]
        code, message = error["code"], error["message"]
    except (ValueError, TypeError, KeyError):
        return _cut(received, f"status {received.status}, no error object: {received.body[:200]!r}")
    return _error(code, message)


def _error(code: Any, message: Any) -> Verdict:
    if not code or not message or code in UNCLEAR:
        return Verdict("unclear", f"{code}: {message}")
    return Verdict("error", str(code))


def _of_body(asked: Asked, received: Received) -> Verdict:
    try:
        answer = json.loads(received.body)
        text, model = answer["choices"][0]["message"]["content"], answer["model"]
    except (ValueError, TypeError, KeyError, IndexError):
        return _cut(received, f"no answer in {received.body[:200]!r}")
    return _of_text(asked, [model], text)


def _of_stream(asked: Asked, received: Received) -> Verdict:
    payloads = [
        part[6:]
        for part in received.body.decode("utf-8", "replace").split("\n\n")[:-1]
        if part[:6] == "data: "
    ]
    ends = payloads.count(DONE)
    if ends > 1 or (ends and payloads[-1] != DONE):
        return Verdict("twice", "something came behind the end mark")
    try:
        events = [json.loads(payload) for payload in payloads if payload != DONE]
    except ValueError as error:
        return Verdict("unclear", f"an event is no JSON: {error}")
    for event in events:
        if "error" in event:
            return _error(event["error"].get("code"), event["error"].get("message"))
    if len({event.get("id") for event in events}) > 1:
        return Verdict("twice", "two answers in one stream")
    pieces = [choice["delta"].get("content") or "" for event in events for choice in event["choices"]]
    text, models = "".join(pieces), [event["model"] for event in events]
    if not ends:
        seen = _of_text(asked, models, text, is_part=True)
        return seen if seen.kind != "whole" else _cut(received, f"a stream of {len(payloads)} events")
    return _of_text(asked, models, text)


def _of_text(asked: Asked, models: Sequence[str], text: str, *, is_part: bool = False) -> Verdict:
    """Whether it is the word of that model, as often as was asked for."""
    said = text.split()
    if set(models) - {asked.word} or set(said) - {asked.word}:
        others = sorted({*models, *said} & set(WORDS) - {asked.word})
        return Verdict("wrong", f"{asked.word} said {text[:100]!r}, models {sorted(set(models))}, {others}")
    if len(said) > asked.tokens:
        return Verdict("twice", f"{len(said)} words for {asked.tokens} tokens")
    if len(said) < asked.tokens and not is_part:
        return Verdict("lost", f"{len(said)} words for {asked.tokens} tokens, as if that were all")
    return Verdict("whole")
