"""Calls in `<tool_call>` tags. Models of three families use them, and mix up what stands inside.

Called by chat.formats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from framework.chat.formats.base import CallSyntax, Sink, Tool, Trigger
from framework.chat.formats.json_calls import JsonCalls
from framework.chat.formats.xml_calls import XmlCalls
from framework.chat.gbnf import Rules
from framework.chat.text_source import Source, Steps

TAG, TAG_END = "<tool_call>", "</tool_call>"
JSON_IN_TAG = JsonCalls(TAG, TAG_END)
FUNCTION_IN_TAG = XmlCalls(
    before="<function=",
    between=">\n",
    key="<parameter=",
    key_end=">",
    value_end="</parameter>",
    after="</function>",
    section=TAG,
    section_end=TAG_END,
    pads_values=True,
)
PAIRS_IN_TAG = XmlCalls(
    before=TAG,
    between="\n",
    key="<arg_key>",
    key_end="</arg_key>\n<arg_value>",
    value_end="</arg_value>",
    after=TAG_END,
)
_INSIDE = re.compile(rf"\s*{TAG}\s*(?P<first>\S)")
_BY_FIRST_CHAR: dict[str, CallSyntax] = {"{": JSON_IN_TAG, "[": JSON_IN_TAG, "<": FUNCTION_IN_TAG}


@dataclass(frozen=True)
class TaggedCalls:
    """Each call is read as what it is; grammars make the one that the model was taught."""

    taught: CallSyntax
    at_start: bool = False

    @property
    def openers(self) -> tuple[str, ...]:
        """See CallSyntax."""
        return self.taught.openers

    @property
    def preserved(self) -> tuple[str, ...]:
        """See CallSyntax."""
        return self.taught.preserved

    def triggers(self, tools: Sequence[Tool]) -> tuple[Trigger, ...]:
        """See CallSyntax."""
        return self.taught.triggers(tools)

    def read(self, source: Source, sink: Sink, tools: Sequence[Tool]) -> Steps[bool]:
        """See CallSyntax."""
        if (yield from source.starts_with(TAG)):
            inside = yield from source.peek(_INSIDE)
            syntax = PAIRS_IN_TAG if inside is None else _BY_FIRST_CHAR.get(inside["first"], PAIRS_IN_TAG)
        else:
            syntax = self.taught
        return (yield from syntax.read(source, sink, tools))

    def grammar(self, rules: Rules, tools: Sequence[Tool], *, parallel: bool) -> str:
        """See CallSyntax."""
        return self.taught.grammar(rules, tools, parallel=parallel)
