"""The settings of a try as they were typed, and the request that they and a conversation make. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.dashboard.tryout.lanes import Kind
from framework.dashboard.tryout.talk import Talk, messages_of
from framework.values.units_text import read_whole_number, whole_number_text

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
PATHS: Mapping[Kind, str] = {"chat": CHAT, "text": COMPLETION}
FORMATS = (("", "text"), ("json_object", "JSON"), ("json_schema", "JSON of a schema"))
FIELDS = ("system", "temperature", "top_p", "max_tokens", "seed", "format", "schema", "tools")
# A page without script shows nothing until the answer is whole: it should not be endless.
USUAL_TOKENS, MOST_TOKENS = 512, 4096
MOST_SEED = 2**32 - 1
# Mirostat and the like start here; beyond, text is noise.
MOST_TEMPERATURE = 5.0


@dataclass(frozen=True)
class Asked:
    """Settings as typed, by the names of `FIELDS`, what they mean, and what of them makes no sense."""

    texts: Mapping[str, str]
    values: Mapping[str, Any] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)


def read_settings(texts: Mapping[str, str]) -> Asked:
    """What the fields mean; those left empty are not sent, so that the model's own settings hold."""
    given = {name: texts.get(name, "").strip() for name in FIELDS}
    readers: Mapping[str, Callable[[str], Any]] = {
        "temperature": lambda text: _number(text, 0.0, MOST_TEMPERATURE),
        "top_p": lambda text: _number(text, 0.0, 1.0),
        "max_tokens": lambda text: _whole(text, 1, MOST_TOKENS),
        "seed": lambda text: _whole(text, 0, MOST_SEED),
        "schema": lambda text: _json(text, dict, "a JSON Schema, which is an object: {...}"),
        "tools": lambda text: _json(text, list, "a list of tools: [{...}]"),
    }
    values: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for name, read in readers.items():
        try:
            if given[name]:
                values[name] = read(given[name])
        except _Wrong as wrong:
            faults[name] = f"Found {given[name][:40]!r}; it must be {wrong.allowed}."
    if given["format"] == "json_schema" and "schema" not in values and "schema" not in faults:
        faults["schema"] = "Give the JSON Schema that the answer has to follow, or choose another form."
    return Asked({**given, "system": texts.get("system", "")}, values, faults)


def body_of(
    model: str, kind: Kind, lane: int, talk: Talk, message: str, asked: Asked, effort: str
) -> dict[str, Any]:
    """The request to the endpoint. A text is continued as it stands."""
    values = asked.values
    body: dict[str, Any] = {"model": model}
    if kind == "text":
        body["prompt"] = message
    else:
        system = asked.texts["system"]
        first = [{"role": "system", "content": system}] if system.strip() else []
        body["messages"] = [*first, *messages_of(talk, lane), {"role": "user", "content": message}]
    body |= {name: values[name] for name in ("temperature", "top_p", "max_tokens", "seed") if name in values}
    if kind == "chat":
        if effort:
            body["reasoning_effort"] = effort
        if form := _response_format(asked):
            body["response_format"] = form
        if values.get("tools"):
            body["tools"] = values["tools"]
    body.setdefault("max_tokens", USUAL_TOKENS)
    return body


def _response_format(asked: Asked) -> dict[str, Any] | None:
    if asked.texts["format"] == "json_object":
        return {"type": "json_object"}
    if asked.texts["format"] == "json_schema":
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": asked.values["schema"]}}
    return None


class _Wrong(Exception):
    def __init__(self, allowed: str) -> None:
        super().__init__(allowed)
        self.allowed = allowed


def _number(text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise _Wrong(f"a number from {low:g} to {high:g}")
    return value


def _whole(text: str, low: int, high: int) -> int:
    if (number := read_whole_number(text, low, high)) is None:
        raise _Wrong(whole_number_text(low, high))
    return number


def _json(text: str, kind: type, allowed: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise _Wrong(allowed)
    return value
