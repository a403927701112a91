"""What a reply says: content, reasoning and calls, out of the text that a model wrote (12 §8.2).

Called for whole replies by nativeserver, and piece by piece by chat.deltas. No text is refused: what can't be
a call is content.
"""

from __future__ import annotations

from dataclasses import dataclass

from framework.chat.formats.base import ReadOptions, ReplyFormat, Sink
from framework.chat.text_source import Source


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


class CollectedReply:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self._contents: list[str] = []
        self._reasonings: list[str] = []
        self._calls: list[tuple[str, str, list[str]]] = []

    @property
    def n_calls(self) -> int:
        """Calls that have begun."""
        return len(self._calls)

    def content(self, text: str) -> None:
        """See formats.Sink."""
        self._contents.append(text)

    def reasoning(self, text: str) -> None:
        """See formats.Sink."""
        self._reasonings.append(text)

    def call(self, name: str, call_id: str = "") -> None:
        """See formats.Sink."""
        self._calls.append((name, call_id, []))

    def arguments(self, text: str) -> None:
        """See formats.Sink."""
        self._calls[-1][2].append(text)

    def reply(self) -> ParsedReply:
        """All of it."""
        calls = tuple(ToolCall(name, "".join(pieces), call_id) for name, call_id, pieces in self._calls)
        return ParsedReply("".join(self._contents), "".join(self._reasonings), calls)


def parse_reply(
    text: str, form: ReplyFormat, options: ReadOptions, *, is_partial: bool = False
) -> ParsedReply:
    """The reply. Of a partial one, only what no further text can change."""
    found = CollectedReply()
    reader = ReplyReader(form, options, found)
    reader.add(text)
    if not is_partial:
        reader.end()
    return found.reply()
