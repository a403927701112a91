"""The replies of gpt-oss: messages in channels, `analysis` for reasoning, `final` for the user.

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
    Trigger,
    arguments_rule,
    plain_name_of,
)
from framework.chat.gbnf import Rules, quote
from framework.chat.text_source import Markers, Source, Steps

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
ENDS = ("<|end|>", "<|return|>", "<|call|>")
ROLE, RECIPIENT = "assistant", " to=functions."
_HEADER = re.compile(
    r"\s*(?:<\|start\|>)?(?:assistant)?(?P<head>[^<]{0,256}(?:<\|(?:channel|constrain)\|>[^<]{0,256}){0,3})<\|message\|>"
)
_CALLED = re.compile(r"to=functions\.(?P<name>[\w.:/-]{1,256})")
_ANALYSIS = re.compile(r"<\|channel\|>analysis")
_BODY_END = Markers((*ENDS, START))
_NEXT = Markers((START, CHANNEL))


@dataclass(frozen=True)
class HarmonyFormat(ReplyFormat):
    """Messages follow each other; each has a header that says whom it is for."""

    name: str = "GPT-OSS"
    reasoning_start: str = f"{CHANNEL}analysis{MESSAGE}"
    reasoning_end: str = ENDS[0]

    def tool_grammar(self, tools: Sequence[Tool], tool_choice: str, parallel: bool) -> ToolGrammar:
        """One call: these models write no more of them in a reply."""
        preserved = (START, CHANNEL, MESSAGE, CONSTRAIN, *ENDS)
        if not tools:
            return ToolGrammar("", lazy=False)
        rules = Rules()
        json_mark = f'" "? {quote(CONSTRAIN)}? " "? "json"?'
        channel = f'({quote(CHANNEL)} ("commentary" | "analysis"))?'
        calls = [
            f"{quote(plain_name_of(tool))} {channel} {json_mark} {quote(MESSAGE)} "
            f"{arguments_rule(rules, tool)} {quote(ENDS[2])}?"
            for tool in tools
        ]
        call = f"{quote(RECIPIENT)} {rules.add('tool-call', ' | '.join(calls))}"
        is_lazy = tool_choice != "required"
        opening = f"({quote(START + ROLE)})? ({quote(CHANNEL + 'commentary')})? "
        rules.root(call if is_lazy else opening + call)
        return ToolGrammar(rules.text(), is_lazy, (Trigger("word", RECIPIENT),) if is_lazy else (), preserved)

    def read(self, source: Source, sink: Sink, options: ReadOptions) -> Steps[None]:
        """Message after message; text outside of any is content."""
        if options.starts_in_reasoning:
            yield from self._read_body(source, sink, "<|channel|>analysis", options)
        is_first = True
        while True:
            space = yield from source.space()
            may_be_header = (yield from source.next_char()) in ("<", "a", "t") if is_first else True
            source.put_back(space)
            header = (yield from source.peek(_HEADER)) if may_be_header else None
            if header is not None:
                source.take_match(header)
                yield from self._read_body(source, sink, header["head"], options)
            elif not is_first:
                sink.content(source.take(1))
            is_first = False
            if not (yield from source.until(_NEXT, sink.content, drops_space=True)):
                return

    def _read_body(self, source: Source, sink: Sink, head: str, options: ReadOptions) -> Steps[None]:
        called = _CALLED.search(head) if options.parse_tools else None
        emit, is_shown = sink.content, False
        if called is not None:
            sink.call(called["name"])
            emit = sink.arguments
        elif _ANALYSIS.search(head):
            is_shown = not options.splits_reasoning
            emit = sink.content if is_shown else sink.reasoning
        if is_shown:
            sink.content(f"{head}{MESSAGE}")
        end = yield from source.until(_BODY_END, emit, drops_space=called is not None)
        if end in ENDS:
            yield from source.skip()
            source.take(len(end))
            if is_shown:
                sink.content(end)
