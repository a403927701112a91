"""What a reply format is: how a model marks reasoning and calls, and the grammar that makes it do so.

Called by chat.formats for its table, by chat.reply to read, by nativeserver.chat_request to constrain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from framework.chat.gbnf import GrammarError, Rules
from framework.chat.json_schema import add_schema
from framework.chat.reasoning import read_reasoning
from framework.chat.text_source import Markers, Source, Steps

Tool = Mapping[str, Any]
"""A function as clients define it: {`type`, `function` {`name`, `parameters`}}."""
ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
_PLAIN_NAME = re.compile(r"[\w.:/-]{1,256}")


@dataclass(frozen=True)
class Trigger:
    """What makes a lazy grammar begin: a word, or a pattern of the whole reply whose group is its start."""

    kind: Literal["word", "pattern_full"]
    value: str


@dataclass(frozen=True)
class ToolGrammar:
    """What a reply with calls has to look like."""

    grammar: str
    """GBNF; empty: nothing is forced."""
    lazy: bool
    """It holds from a trigger on, instead of from the first token."""
    triggers: tuple[Trigger, ...] = ()
    preserved: tuple[str, ...] = ()
    """Texts of special tokens that have to be seen in the reply."""


class Sink(Protocol):
    """Where a reader puts what it found; text comes in pieces."""

    def content(self, text: str) -> None:
        """Text for the user."""

    def reasoning(self, text: str) -> None:
        """Text the model wrote for itself."""

    def call(self, name: str, call_id: str = "") -> None:
        """A call begins; what `arguments` brings from now on belongs to it."""

    def arguments(self, text: str) -> None:
        """JSON of the newest call's arguments."""


@dataclass(frozen=True)
class ReadOptions:
    """How a reply is to be read."""

    parse_tools: bool = False
    splits_reasoning: bool = True
    """Reasoning is told apart; otherwise it stays in the content, tags included."""
    starts_in_reasoning: bool = False
    tools: Sequence[Tool] = ()
    """The functions that may be called; empty: unknown."""


class CallSyntax(Protocol):
    """How a family of models writes calls."""

    @property
    def openers(self) -> tuple[str, ...]:
        """Texts that may begin calls, anywhere."""

    @property
    def at_start(self) -> bool:
        """Calls may also begin a reply without an opener."""

    @property
    def preserved(self) -> tuple[str, ...]:
        """Texts of special tokens."""

    def triggers(self, tools: Sequence[Tool]) -> tuple[Trigger, ...]:
        """When its grammar begins, in a reply that need not have calls; none: it can't be forced then."""

    def read(self, source: Source, sink: Sink, tools: Sequence[Tool]) -> Steps[bool]:
        """Reads calls if there are some next; otherwise nothing is taken and the answer is False."""

    def grammar(self, rules: Rules, tools: Sequence[Tool], *, parallel: bool) -> str:
        """The body of the rule for one call, or for one and more. Raises GrammarError and SchemaError."""


@dataclass(frozen=True)
class ReplyFormat:
    """A family of models: reasoning tags, calls, marks around the content."""

    name: str
    reasoning_start: str = ""
    reasoning_end: str = ""
    """Empty: these models don't mark reasoning."""
    calls: CallSyntax | None = None
    content_marks: tuple[str, ...] = ()
    """Left out of the content."""
    call_id_length: int = 32
    """Letters and digits of an id that is made up; some templates take one length only."""

    def tool_grammar(self, tools: Sequence[Tool], tool_choice: str, parallel: bool) -> ToolGrammar:
        """The grammar for `tool_choice` `auto` or `required`. Raises GrammarError and SchemaError."""
        if self.calls is None or not tools:
            return ToolGrammar("", lazy=False)
        triggers, preserved = self.calls.triggers(tools), self.calls.preserved
        is_lazy = tool_choice != "required"
        if is_lazy and not triggers:
            return ToolGrammar("", lazy=False, preserved=preserved)
        rules = Rules()
        rules.root(self.calls.grammar(rules, tools, parallel=parallel))
        return ToolGrammar(rules.text(), is_lazy, triggers if is_lazy else (), preserved)

    def read(self, source: Source, sink: Sink, options: ReadOptions) -> Steps[None]:
        """The whole reply: reasoning, then content and calls."""
        if self.reasoning_end and options.splits_reasoning:
            yield from read_reasoning(
                source, sink, self.reasoning_start, self.reasoning_end, is_open=options.starts_in_reasoning
            )
        calls = self.calls if options.parse_tools else None
        if calls is not None and calls.at_start and (yield from calls.read(source, sink, options.tools)):
            yield from source.skip()
        markers = Markers((*self.content_marks, *(calls.openers if calls is not None else ())))
        while marker := (yield from source.until(markers, sink.content, drops_space=calls is not None)):
            if calls is not None and (yield from calls.read(source, sink, options.tools)):
                yield from source.skip()
                continue
            space = yield from source.space()
            source.take(len(marker))
            sink.content(space if marker in self.content_marks else space + marker)


def name_of(tool: Tool) -> str:
    """The function's name."""
    name: str = tool["function"]["name"]
    return name


def plain_name_of(tool: Tool) -> str:
    """The function's name, where it stands between marks; GrammarError when it could hold one."""
    name = name_of(tool)
    if not _PLAIN_NAME.fullmatch(name):
        raise GrammarError(
            f"the function name {name!r:.80} has characters that this model can't write in a call"
        )
    return name


def arguments_rule(rules: Rules, tool: Tool) -> str:
    """The name of the rule for the arguments, one JSON object."""
    function = tool["function"]
    return add_schema(rules, function.get("parameters") or ANY_OBJECT, f"{function['name']}-arguments")


def some(rules: Rules, one: str, *, parallel: bool, between: str) -> str:
    """One of a rule, or several with something in between."""
    return f"{one} ({between} {one})*" if parallel else one
