"""Calls as a name between marks, followed by the arguments in JSON.

DeepSeek, Kimi, newer Mistral models, Functionary 3.1. Called by chat.formats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from framework.chat.formats.base import Sink, Tool, Trigger, arguments_rule, plain_name_of, some
from framework.chat.gbnf import Rules, quote
from framework.chat.text_source import Source, Steps

NAME = r"(?P<name>[\w.:/-]{1,256}?)"


@dataclass(frozen=True)
class NamedCalls:
    """`section (before NAME between {...} after)+ section_end`."""

    before: str
    between: str
    after: str = ""
    section: str = ""
    section_end: str = ""
    between_pattern: str = ""
    """Regular expression of what models write between name and arguments; empty: `between`."""
    before_pattern: str = ""
    """Likewise for `before`."""
    between_rule: str = ""
    """GBNF of it."""
    special: tuple[str, ...] = ()
    """Texts of special tokens."""
    at_start: bool = False

    @property
    def openers(self) -> tuple[str, ...]:
        """See CallSyntax."""
        return tuple(text for text in (self.section, self._first_mark) if text)

    @property
    def preserved(self) -> tuple[str, ...]:
        """See CallSyntax."""
        return self.special

    @cached_property
    def _first_mark(self) -> str:
        """The mark itself, without the words that follow it."""
        return self.before[: self.before.find(">") + 1] or self.before

    @cached_property
    def _head(self) -> re.Pattern[str]:
        section = rf"(?:{re.escape(self.section)}\s*)?" if self.section else ""
        before = self.before_pattern or re.escape(self.before)
        between = self.between_pattern or re.escape(self.between.rstrip()) + r"\s*"
        return re.compile(rf"\s*{section}{before}{NAME}\s*{between}(?=\{{)")

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
            sink.call(head["name"], head.groupdict().get("id") or "")
            yield from source.json_value(sink.arguments)
            if self.after:
                yield from source.skip()
                yield from source.literal(self.after.strip())
            head = yield from self._following(source)
        if self.section_end:
            yield from source.skip()
            yield from source.literal(self.section_end)
        return True

    def _following(self, source: Source) -> Steps[re.Match[str] | None]:
        has_mark = yield from source.starts_with(self._first_mark)
        return (yield from source.peek(self._head)) if has_mark else None

    def grammar(self, rules: Rules, tools: Sequence[Tool], *, parallel: bool) -> str:
        """See CallSyntax."""
        space = rules.space()
        between, after = self.between_rule or quote(self.between), quote(self.after) if self.after else ""
        calls = [
            f"{quote(self.before + plain_name_of(tool))} {between} {arguments_rule(rules, tool)} {after}"
            for tool in tools
        ]
        body = some(rules, rules.add("tool-call", " | ".join(calls)), parallel=parallel, between=space)
        if self.section:
            return f"{quote(self.section)} {space} {body} {space} {quote(self.section_end)}"
        return body
