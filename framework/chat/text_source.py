"""Text that arrives in pieces, for readers that are generators: each `yield` says that more is needed.

Called by chat.reply and chat.formats. What readers see does not depend on where the pieces were cut. Text is
dropped as it is taken, so that a reply costs as much as its length, however small its pieces are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from framework.chat.partial_json import JsonScanner

T = TypeVar("T")
Steps = Generator[None, None, T]
Emit = Callable[[str], None]

HEADER_CHARS = 512
"""What may have to be seen before a text is known to be a call."""
MAX_SPACE = 256
"""Blanks before a marker that belong to it."""


class Markers:
    """Texts to look for."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(dict.fromkeys(text for text in texts if text))
        # The longest first, where one is the start of another.
        longest_first = sorted(self.texts, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        self._starts = frozenset(text[:size] for text in self.texts for size in range(1, len(text)))
        self._longest = max(map(len, self.texts), default=1) - 1

    def find(self, text: str, at: int) -> re.Match[str] | None:
        """The first of them."""
        return self._pattern.search(text, at) if self.texts else None

    def held(self, text: str, at: int) -> int:
        """Where the part at the end begins that could become one of them."""
        for start in range(max(at, len(text) - self._longest), len(text)):
            if text[start:] in self._starts:
                return start
        return len(text)


class Source:
    """The text that was not taken yet."""

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self.is_whole = False
        """Nothing more will arrive."""

    def add(self, piece: str) -> None:
        """The next piece."""
        self._text = self._text[self._at :] + piece
        self._at = 0

    def take(self, size: int) -> str:
        """The next characters."""
        taken = self._text[self._at : self._at + size]
        self._at += len(taken)
        return taken

    def take_rest(self) -> str:
        """Everything that is here."""
        return self.take(len(self._text) - self._at)

    def take_match(self, found: re.Match[str]) -> None:
        """Up to the end of what `peek` found."""
        self._at = found.end()

    def peek(self, pattern: re.Pattern[str], limit: int = HEADER_CHARS) -> Steps[re.Match[str] | None]:
        """The pattern at the next character, within a limit.

        The pattern has to find the same thing however much text follows.
        """
        while (found := pattern.match(self._text, self._at, self._at + limit)) is None:
            if self.is_whole or len(self._text) - self._at >= limit:
                return None
            yield
        return found

    def next_char(self) -> Steps[str]:
        """The next character, not taken; empty at the end."""
        while self._at == len(self._text) and not self.is_whole:
            yield
        return self._text[self._at : self._at + 1]

    def skip(self, chars: str = " \t\r\n") -> Steps[None]:
        """Takes any number of these characters."""
        while (char := (yield from self.next_char())) and char in chars:
            rest = self._text[self._at :]
            self._at += len(rest) - len(rest.lstrip(chars))

    def space(self) -> Steps[str]:
        """Takes the blanks that are next, up to a limit."""
        while True:
            rest = self._text[self._at : self._at + MAX_SPACE]
            size = len(rest) - len(rest.lstrip())
            if size < len(rest) or size == MAX_SPACE or self.is_whole:
                return self.take(size)
            yield

    def put_back(self, text: str) -> None:
        """Before what is next."""
        self._text = text + self._text[self._at :]
        self._at = 0

    def starts_with(self, mark: str) -> Steps[bool]:
        """Whether blanks, or none, and then this text are next; nothing is taken."""
        space = yield from self.space()
        is_next = yield from self.literal(mark)
        self.put_back(space + mark if is_next else space)
        return is_next

    def literal(self, text: str) -> Steps[bool]:
        """Takes the text if it is next."""
        while not self._text.startswith(text, self._at):
            if self.is_whole or not text.startswith(self._text[self._at :]):
                return False
            yield
        self._at += len(text)
        return True

    def until(self, markers: Markers, emit: Emit, *, drops_space: bool = False) -> Steps[str]:
        """Emits the text up to a marker, and returns the marker, which is not taken; empty at the end.

        With `drops_space` the blanks before the marker are not emitted and not taken either.
        """
        while (found := markers.find(self._text, self._at)) is None and not self.is_whole:
            end = markers.held(self._text, self._at)
            self._emit_to(self._space_before(end) if drops_space else end, emit)
            yield
        if found is None:
            self._emit_to(len(self._text), emit)
            return ""
        end = found.start()
        self._emit_to(self._space_before(end) if drops_space else end, emit)
        return found[0]

    def json_value(self, emit: Emit) -> Steps[bool]:
        """Emits the JSON value at the next character as it arrives; False when it is cut off."""
        scanner = JsonScanner()
        while True:
            self._emit_to(scanner.scan(self._text, self._at), emit)
            if scanner.is_done or self.is_whole:
                return scanner.is_done
            yield

    def _space_before(self, end: int) -> int:
        start = max(self._at, end - MAX_SPACE)
        return start + len(self._text[start:end].rstrip())

    def _emit_to(self, end: int, emit: Emit) -> None:
        if end > self._at:
            emit(self.take(end - self._at))
