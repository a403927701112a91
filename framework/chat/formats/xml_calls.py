"""Calls whose arguments are marked one by one, each as text or as JSON.

Qwen3-Coder, GLM 4.5, MiniMax M2, Seed-OSS. Read as one JSON object. Called by chat.formats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from framework.chat.formats.base import Sink, Tool, Trigger, name_of, plain_name_of, some
from framework.chat.gbnf import Rules, add_until, choice, quote
from framework.chat.json_schema import add_schema
from framework.chat.text_source import Markers, Source, Steps


@dataclass(frozen=True)
class XmlCalls:
    """`section (before NAME between (key KEY key_end VALUE value_end)* after)+ section_end`."""

    before: str
    between: str
    key: str
    key_end: str
    value_end: str
    after: str
    section: str = ""
    section_end: str = ""
    pads_values: bool = False
    """Values stand on lines of their own."""
    at_start: bool = False

    @property
    def openers(self) -> tuple[str, ...]:
        """See CallSyntax."""
        return tuple(text for text in (self.section, self.before) if text)

    @property
    def preserved(self) -> tuple[str, ...]:
        """See CallSyntax."""
        marks = (self.section, self.section_end, self.before, self.after, self.key, self.value_end)
        return tuple(mark for mark in marks if mark.startswith("<") and mark.endswith(">"))

    @cached_property
    def _head(self) -> re.Pattern[str]:
        section = rf"(?:{re.escape(self.section)}\s*)?" if self.section else ""
        # A name may end where the first key begins.
        end = re.escape(self.between.strip()) or rf"(?:\n|(?={re.escape(self.key)}|{re.escape(self.after)}))"
        return re.compile(rf"\s*{section}{re.escape(self.before)}\s*(?P<name>[\w.:/-]{{1,256}}?)[ \t]*{end}")

    @cached_property
    def _key(self) -> re.Pattern[str]:
        end = r"\s*".join(map(re.escape, self.key_end.split("\n")))
        return re.compile(rf"\s*{re.escape(self.key)}(?P<key>[^<>\"\n]{{1,256}}?){end}")

    @cached_property
    def _value_end(self) -> Markers:
        return Markers((self.value_end, "\n" + self.value_end))

    def triggers(self, tools: Sequence[Tool]) -> tuple[Trigger, ...]:
        """See CallSyntax."""
        return (Trigger("word", self.section or self.before),)

    def read(self, source: Source, sink: Sink, tools: Sequence[Tool]) -> Steps[bool]:
        """See CallSyntax."""
        head = yield from source.peek(self._head)
        if head is None:
            return False
        while head is not None:
            source.take_match(head)
            sink.call(head["name"])
            yield from self._read_arguments(source, sink, _properties_of(head["name"], tools))
            yield from source.skip()
            yield from source.literal(self.after)
            head = (
                (yield from source.peek(self._head)) if (yield from source.starts_with(self.before)) else None
            )
        if self.section_end:
            yield from source.skip()
            yield from source.literal(self.section_end)
        return True

    def _read_arguments(self, source: Source, sink: Sink, properties: Mapping[str, Any]) -> Steps[None]:
        separator = "{"
        while (yield from source.starts_with(self.key)):
            found = yield from source.peek(self._key)
            if found is None:
                break
            source.take_match(found)
            key = found["key"].strip()
            sink.arguments(f"{separator}{json.dumps(key, ensure_ascii=False)}: ")
            separator = ", "
            if not (yield from self._read_value(source, sink.arguments, properties.get(key))):
                return
        sink.arguments("{}" if separator == "{" else "}")

    def _read_value(self, source: Source, emit: Callable[[str], None], schema: Any) -> Steps[bool]:
        """Whether the value is whole. Text goes on at once; for anything else its end is waited for."""
        yield from source.literal("\n")
        pieces: list[str] = []
        if _is_text(schema):
            emit('"')
            end = yield from source.until(self._value_end, lambda text: emit(_escaped(text)))
            if end:
                emit('"')
        else:
            end = yield from source.until(self._value_end, pieces.append)
            emit(_json_or_text("".join(pieces)))
        source.take(len(end))
        return bool(end)

    def grammar(self, rules: Rules, tools: Sequence[Tool], *, parallel: bool) -> str:
        """See CallSyntax."""
        space = rules.space()
        calls = [
            f"{quote(self.before + plain_name_of(tool) + self.between)} {space} "
            f"{self._arguments_rule(rules, tool)} {quote(self.after)}"
            for tool in tools
        ]
        body = some(rules, rules.add("tool-call", " | ".join(calls)), parallel=parallel, between=space)
        if self.section:
            return f"{quote(self.section)} {space} {body} {space} {quote(self.section_end)}"
        return body

    def _arguments_rule(self, rules: Rules, tool: Tool) -> str:
        """Each argument once, in the order of the schema."""
        function = tool["function"]
        schema = _as_object(function.get("parameters"))
        required = schema.get("required")
        members = []
        for key, value in _properties_of(function["name"], [tool]).items():
            member = rules.add(f"{function['name']}-{key}", self._member(rules, schema, key, value))
            is_needed = isinstance(required, list) and key in required
            members.append(member if is_needed else f"({member})?")
        return rules.add(f"{function['name']}-arguments", " ".join(members) or '""')

    def _member(self, rules: Rules, schema: Mapping[str, Any], key: str, value: Any) -> str:
        space, pad = rules.space(), "\n" if self.pads_values else ""
        start, end = quote(self.key + key + self.key_end + pad), quote(pad + self.value_end)
        if not _is_text(value):
            # References are looked up in the whole schema.
            shared = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
            return f"{start} {add_schema(rules, {**shared, **_as_object(value)}, key)} {end} {space}"
        if isinstance(texts := value.get("enum"), list):
            known = choice([quote(text) for text in texts if isinstance(text, str)] or ['""'])
            return f"{start} {known} {end} {space}"
        text, is_new = rules.shared_later("text-value")
        if is_new:
            rules.fill(text, add_until(rules, "text", pad + self.value_end))
        return f"{start} {text} {end} {space}"


def _as_object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _properties_of(name: str, tools: Sequence[Tool]) -> Mapping[str, Any]:
    for tool in tools:
        if name_of(tool) == name:
            return _as_object(_as_object(tool["function"].get("parameters")).get("properties"))
    return {}


def _is_text(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "string"


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _json_or_text(text: str) -> str:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return json.dumps(text, ensure_ascii=False)
    return text.strip()
