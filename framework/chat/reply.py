"""What a reply says: content, reasoning and calls, out of the text that a model wrote (12 §8.2).

Called for whole replies by nativeserver, and piece by piece by chat.deltas. No text is refused: what can't be
a call is content.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from framework.chat.formats.base import ReadOptions, ReplyFormat, Sink, Tool
from framework.chat.text_source import Source

__all__ = ["ParsedReply", "ReplyReader", "ToolCall", "parse_reply", "read_options"]


@dataclass(frozen=True)
class ToolCall:
    """A call. `arguments` is JSON text as the model wrote it; `call_id` is empty when it gave none."""

    name: str
    arguments: str
    call_id: str = ""


@dataclass(frozen=True)
class ParsedReply:
    """A reply taken apart."""

    content: str
    reasoning: str
    tool_calls: tuple[ToolCall, ...]


class ReplyReader:
    """Reads a reply as it arrives, into a sink. What is told once stays."""

    def __init__(self, form: ReplyFormat, options: ReadOptions, sink: Sink) -> None:
        self._source = Source()
        self._steps = form.read(self._source, sink, options)
        self._has_ended = False

    def add(self, piece: str) -> None:
        """The next piece of the text. What could still become a mark is kept back."""
        self._source.add(piece)
        self._advance()

    def end(self) -> None:
        """There are no more: what was kept back is told."""
        self._source.is_whole = True
        self._advance()

    def _advance(self) -> None:
        if not self._has_ended:
            self._has_ended = next(self._steps, True) is True


class _Collected:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.contents: list[str] = []
        self.reasonings: list[str] = []
        self.calls: list[tuple[str, str, list[str]]] = []

    def content(self, text: str) -> None:
        self.contents.append(text)

    def reasoning(self, text: str) -> None:
        self.reasonings.append(text)

    def call(self, name: str, call_id: str = "") -> None:
        self.calls.append((name, call_id, []))

    def arguments(self, text: str) -> None:
        self.calls[-1][2].append(text)


def read_options(
    *, parse_tools: bool, reasoning_format: str, starts_in_reasoning: bool, tools: Sequence[Tool] = ()
) -> ReadOptions:
    """The options for a `reasoning_format` of chat.reasoning.FORMATS."""
    return ReadOptions(
        parse_tools=parse_tools,
        splits_reasoning=reasoning_format != "none",
        starts_in_reasoning=starts_in_reasoning,
        tools=tuple(tools),
    )


def parse_reply(
    text: str,
    form: ReplyFormat,
    *,
    is_partial: bool = False,
    parse_tools: bool = False,
    reasoning_format: str = "auto",
    starts_in_reasoning: bool = False,
    tools: Sequence[Tool] = (),
) -> ParsedReply:
    """The reply. Of a partial one, only what no further text can change."""
    options = read_options(
        parse_tools=parse_tools,
        reasoning_format=reasoning_format,
        starts_in_reasoning=starts_in_reasoning,
        tools=tools,
    )
    found = _Collected()
    reader = ReplyReader(form, options, found)
    reader.add(text)
    if not is_partial:
        reader.end()
    calls = (ToolCall(name, "".join(pieces), call_id) for name, call_id, pieces in found.calls)
    return ParsedReply("".join(found.contents), "".join(found.reasonings), tuple(calls))
