"""A reply as the pieces that clients get while it is written (12 §8.6-8.7).

Called by the flavours of nativeserver. What was sent is never sent again and never taken back.
"""

from __future__ import annotations

from dataclasses import dataclass

from framework.chat.formats.base import ReadOptions, ReplyFormat
from framework.chat.reply import CollectedReply, ParsedReply, ReplyReader


@dataclass(frozen=True)
class Delta:
    """More of one of three things; `call_index` says which call, counted from 0."""

    content: str = ""
    reasoning: str = ""
    call_index: int = -1
    """-1: it is not about a call."""
    call_name: str = ""
    """Whole, and only in the first delta of a call."""
    call_id: str = ""
    """As the model gave it; empty when it gave none."""
    arguments: str = ""


class ReplyDeltas:
    """Reads one reply. It also keeps what was told so far, for flavours that repeat it at the end."""

    def __init__(self, form: ReplyFormat, options: ReadOptions) -> None:
        self._reader = ReplyReader(form, options, self)
        self._new: list[Delta] = []
        self._told = CollectedReply()

    def feed(self, piece: str) -> list[Delta]:
        """What is known after the next piece of the text."""
        self._reader.add(piece)
        return self._taken()

    def finish(self) -> list[Delta]:
        """What was kept back until the end."""
        self._reader.end()
        return self._taken()

    def so_far(self) -> ParsedReply:
        """Everything that was told."""
        return self._told.reply()

    def content(self, text: str) -> None:
        """See formats.Sink; called by the reader."""
        if text:
            self._told.content(text)
            self._add(Delta(content=text))

    def reasoning(self, text: str) -> None:
        """See formats.Sink; called by the reader."""
        if text:
            self._told.reasoning(text)
            self._add(Delta(reasoning=text))

    def call(self, name: str, call_id: str = "") -> None:
        """See formats.Sink; called by the reader."""
        self._told.call(name, call_id)
        self._new.append(Delta(call_index=self._told.n_calls - 1, call_name=name, call_id=call_id))

    def arguments(self, text: str) -> None:
        """See formats.Sink; called by the reader."""
        if text:
            self._told.arguments(text)
            self._add(Delta(call_index=self._told.n_calls - 1, arguments=text))

    def _add(self, delta: Delta) -> None:
        """Adds to the last delta when it is about the same thing, so that a piece makes few events."""
        last = self._new[-1] if self._new else None
        if last is None or not _are_alike(last, delta):
            self._new.append(delta)
            return
        self._new[-1] = Delta(
            content=last.content + delta.content,
            reasoning=last.reasoning + delta.reasoning,
            call_index=last.call_index,
            call_name=last.call_name,
            call_id=last.call_id,
            arguments=last.arguments + delta.arguments,
        )

    def _taken(self) -> list[Delta]:
        taken, self._new = self._new, []
        return taken


def _are_alike(one: Delta, other: Delta) -> bool:
    if one.call_index >= 0 or other.call_index >= 0:
        return one.call_index == other.call_index
    return bool(one.content) == bool(other.content)
