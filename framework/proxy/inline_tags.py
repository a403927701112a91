"""A block `<think>` ... `</think>` at the head of content, told from what follows it (08 §11.8). Pure."""

from __future__ import annotations

from typing import Literal

OPEN, CLOSE = "<think>", "</think>"


class InlineTags:
    """One text that comes in pieces. What may yet become a tag is held back; nothing is shown twice."""

    def __init__(self) -> None:
        self._held = ""
        self._part: Literal["head", "block", "plain"] = "head"

    @property
    def is_decided_plain(self) -> bool:
        """Whether everything that follows is plain content."""
        return self._part == "plain" and not self._held

    def feed(self, piece: str) -> tuple[str, str]:
        """Reasoning and content that a piece brings."""
        text, self._held = self._held + piece, ""
        if self._part == "head":
            head = text.lstrip()
            if len(head) < len(OPEN) and OPEN.startswith(head):
                self._held = text
                return "", ""
            if not head.startswith(OPEN):
                self._part = "plain"
                return "", text
            self._part, text = "block", head[len(OPEN) :]
        if self._part == "plain":
            return "", text
        thought, tag, rest = text.partition(CLOSE)
        if tag:
            self._part = "plain"
            return thought, rest
        held = _tail(text)
        self._held = text[len(text) - held :]
        return text[: len(text) - held], ""

    def finish(self) -> tuple[str, str]:
        """What was held back: inside an unclosed block it is reasoning."""
        held, self._held = self._held, ""
        return (held, "") if self._part == "block" else ("", held)


def _tail(text: str) -> int:
    """Characters at the end of a text that could be the beginning of the closing tag."""
    return next((n for n in range(min(len(CLOSE) - 1, len(text)), 0, -1) if CLOSE.startswith(text[-n:])), 0)
