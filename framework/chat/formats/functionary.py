"""The replies of Functionary 3.2: parts that begin with the name of their recipient.

Called by chat.formats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from framework.chat.formats.base import (
    ReadOptions,
    ReplyFormat,
    Sink,
    Tool,
    ToolGrammar,
    arguments_rule,
    name_of,
    plain_name_of,
    some,
)
from framework.chat.gbnf import Rules, quote
from framework.chat.text_source import Markers, Source, Steps

MARK, EVERYBODY = ">>>", "all"
_HEADER = re.compile(r"\s*(?:>>>)?(?P<name>[\w.-]{1,256})\n")
_NEXT = Markers((MARK,))


@dataclass(frozen=True)
class FunctionaryFormat(ReplyFormat):
    """`>>>all` and text, `>>>NAME` and arguments; the first mark is part of the prompt."""

    name: str = "Functionary v3.2"

    def tool_grammar(self, tools: Sequence[Tool], tool_choice: str, parallel: bool) -> ToolGrammar:
        """Nothing tells early enough that a call begins, so only required calls are forced."""
        if tool_choice != "required" or not tools:
            return ToolGrammar("", lazy=False)
        rules = Rules()
        calls = [f'{quote(plain_name_of(tool))} "\\n" {arguments_rule(rules, tool)}' for tool in tools]
        call = rules.add("tool-call", " | ".join(calls))
        rules.root(some(rules, call, parallel=parallel, between=f'"\\n"? {quote(MARK)}'))
        return ToolGrammar(rules.text(), lazy=False)

    def read(self, source: Source, sink: Sink, options: ReadOptions) -> Steps[None]:
        """Part after part. A part for nobody known is content with its header."""
        names = {name_of(tool) for tool in options.tools}
        while True:
            header = yield from source.peek(_HEADER)
            name = header["name"] if header is not None else ""
            if header is not None and name == EVERYBODY:
                source.take_match(header)
            elif header is not None and options.parse_tools and (name in names or not names):
                source.take_match(header)
                sink.call(name)
                yield from source.json_value(sink.arguments)
                yield from source.skip()
            else:
                space = yield from source.space()
                sink.content(space + (MARK if (yield from source.literal(MARK)) else ""))
            if not (yield from source.until(_NEXT, sink.content, drops_space=True)):
                return
