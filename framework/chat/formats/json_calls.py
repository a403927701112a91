"""Calls as JSON objects with a name and arguments, alone or in a list, mostly between marks.

Hermes, Qwen, Llama 3, Mistral Nemo, Command R7B, Granite and many more. Called by chat.formats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from framework.chat.formats.base import Sink, Tool, Trigger, arguments_rule, name_of, some
from framework.chat.gbnf import Rules, quote
from framework.chat.text_source import Source, Steps

_STRING = r'"(?:[^"\\]|\\.)*"'
_TAIL = re.compile(rf"\s*(?:,\s*{_STRING}\s*:\s*(?:{_STRING}|[\w.+-]+)\s*)*\}}")
"""Members behind the arguments; no model writes more of a call there."""


@dataclass(frozen=True)
class JsonCalls:
    """`opener {"name": ..., "arguments": {...}} closer`, with a list of such objects where `is_list`."""

    opener: str = ""
    """Empty: a reply that begins with such an object is a call."""
    closer: str = ""
    is_list: bool = False
    at_start: bool = False
    """The opener may be left out at the start of the reply."""
    name_key: str = "name"
    arguments_key: str = "arguments"
    special: tuple[str, ...] = ()
    """Texts of special tokens besides opener and closer."""

    @property
    def openers(self) -> tuple[str, ...]:
        """See CallSyntax."""
        return (self.opener,) if self.opener else ()

    @property
    def preserved(self) -> tuple[str, ...]:
        """See CallSyntax."""
        return tuple(
            text for text in (self.opener, self.closer, *self.special) if text.startswith(("<", "["))
        )

    @cached_property
    def _item(self) -> str:
        names = rf"{self.name_key}|name|tool_name"
        arguments = rf"{self.arguments_key}|arguments|parameters"
        ids = r'"(?:id|tool_call_id)"\s*:\s*"(?P<id>[^"\\]*)"'
        return (
            rf'\{{\s*(?:(?:{ids}|"type"\s*:\s*"function")\s*,\s*)*'
            rf'"(?:{names})"\s*:\s*(?P<name>{_STRING})\s*,\s*"(?:{arguments})"\s*:\s*(?=\S)'
        )

    @cached_property
    def _head(self) -> re.Pattern[str]:
        opener = rf"(?:{re.escape(self.opener)})" if self.opener else ""
        fence = r"\s*(?P<fence>```(?:json)?\s*)?"
        return re.compile(rf"\s*{opener}{'?' if self.at_start else ''}{fence}(?P<list>\[\s*)?{self._item}")

    @cached_property
    def _next(self) -> re.Pattern[str]:
        return re.compile(rf"\s*,\s*{self._item}")

    def triggers(self, tools: Sequence[Tool]) -> tuple[Trigger, ...]:
        """See CallSyntax."""
        bare = rf'\s*(\{{\s*"{self.name_key}"\s*:\s*")[\s\S]*'
        words = (Trigger("word", self.opener),) if self.opener else ()
        return (*words, Trigger("pattern_full", bare)) if self.at_start and not self.is_list else words

    def read(self, source: Source, sink: Sink, tools: Sequence[Tool]) -> Steps[bool]:
        """See CallSyntax."""
        if self.at_start and not (yield from self._may_start(source)):
            return False
        head = yield from source.peek(self._head)
        if head is None or not self._is_known(head, tools):
            return False
        is_list, has_fence = head["list"] is not None, head["fence"] is not None
        yield from self._read_item(source, sink, head)
        while is_list and (following := (yield from self._following(source))) is not None:
            yield from self._read_item(source, sink, following)
        if is_list:
            yield from source.skip()
            yield from source.literal("]")
        yield from self._read_end(source, has_fence=has_fence)
        return True

    def _may_start(self, source: Source) -> Steps[bool]:
        """Whether it is worth waiting for more, in a reply that may begin with anything."""
        space = yield from source.space()
        char = yield from source.next_char()
        source.put_back(space)
        return char != "" and char in "{[`" + self.opener[:1]

    def _is_known(self, head: re.Match[str], tools: Sequence[Tool]) -> bool:
        """Without an opener, only the name tells a call from an answer in JSON."""
        has_opener = bool(self.opener) and self.opener in head[0]
        return has_opener or not tools or _decoded(head["name"]) in {name_of(tool) for tool in tools}

    def _following(self, source: Source) -> Steps[re.Match[str] | None]:
        has_more = yield from source.starts_with(",")
        return (yield from source.peek(self._next)) if has_more else None

    def _read_item(self, source: Source, sink: Sink, head: re.Match[str]) -> Steps[None]:
        source.take_match(head)
        sink.call(_decoded(head["name"]), head["id"] or "")
        if (yield from source.next_char()) == '"':
            pieces: list[str] = []
            yield from source.json_value(pieces.append)
            sink.arguments(_decoded("".join(pieces)))
        else:
            yield from source.json_value(sink.arguments)
        if (tail := (yield from source.peek(_TAIL))) is not None:
            source.take_match(tail)

    def _read_end(self, source: Source, *, has_fence: bool) -> Steps[None]:
        if has_fence:
            yield from source.skip()
            yield from source.literal("```")
        if self.closer:
            yield from source.skip()
            yield from source.literal(self.closer)

    def grammar(self, rules: Rules, tools: Sequence[Tool], *, parallel: bool) -> str:
        """See CallSyntax."""
        space = rules.space()
        items = [
            f'"{{" {space} {quote(json.dumps(self.name_key))} {space} ":" {space} '
            f'{quote(json.dumps(name_of(tool), ensure_ascii=False))} {space} "," {space} '
            f'{quote(json.dumps(self.arguments_key))} {space} ":" {space} {arguments_rule(rules, tool)} '
            f'{space} "}}"'
            for tool in tools
        ]
        one = rules.add("tool-call", " | ".join(items))
        if self.is_list:
            listed = some(rules, one, parallel=parallel, between=f'{space} "," {space}')
            one = f'"[" {space} {listed} {space} "]"'
        if self.opener:
            opener = f"({quote(self.opener)} {space})?" if self.at_start else f"{quote(self.opener)} {space}"
            closer = f" {space} {quote(self.closer)}" if self.closer else ""
            one = rules.add("marked-call", f"{opener} {one}{closer}")
        return (
            one if self.is_list else some(rules, one, parallel=parallel and bool(self.opener), between=space)
        )


def _decoded(text: str) -> str:
    """The text of a JSON string; as it is, when it is none."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text
