"""Where every key and value of a TOML text stands. Used by `document.py`, and only once there is a problem.

tomli gives values without places, so this scanner walks the text a second time. It trusts that the text
is valid: at the first thing that it does not understand it stops and keeps what it has found, except for
names that are declared twice, which it notes and steps over. It judges nothing else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from framework.manifest.key_paths import KeyPath

# Far deeper than any manifest; keeps the recursion below Python's own limit.
MAX_DEPTH = 100

SPACES = re.compile(r"[ \t]*+")
BLANKS = re.compile(r"(?:[ \t\n]++|#[^\n]*+)*+")
BARE_KEY = re.compile(r"[A-Za-z0-9_-]++")
STRING = re.compile(
    r'"""(?:[^"\\]++|\\.|"{1,2}(?!"))*+"{3,5}'
    r"|'''(?:[^']++|'{1,2}(?!'))*+'{3,5}"
    r'|"(?:[^"\\\n]++|\\[^\n])*+"'
    r"|'[^'\n]*+'",
    re.DOTALL,
)
SCALAR = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]++|[^\s,\]}#=\[{\"']++")
# What most lines are: a bare key and a value without parts. Anything else takes the long way round.
SIMPLE = re.compile(
    r"([A-Za-z0-9_-]++)[ \t]*+=[ \t]*+"
    r"(\"(?:[^\"\\\n]++|\\[^\n])*+\"(?!\")|'[^'\n]*+'(?!')|[^\s,\]}#=\[{\"']++)"
    r"(?=[ \t]*+(?:[\n,}#]|\Z))"
)
ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
SHORT_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


class Span(NamedTuple):
    """Offsets into the text: `start` is the first character, `end` the one behind the last."""

    start: int
    end: int


@dataclass(frozen=True)
class Duplicate:
    """A name declared a second time; `statement` is what has to go for the rest to be readable."""

    path: KeyPath
    first: Span
    second: Span
    statement: Span


@dataclass
class Positions:
    """Spans of keys and values by path. Tables made by a header have a key and no value."""

    text: str
    keys: dict[KeyPath, Span] = field(default_factory=dict)
    values: dict[KeyPath, Span] = field(default_factory=dict)
    duplicates: list[Duplicate] = field(default_factory=list)
    too_deep: Span | None = None
    """Where nesting goes deeper than `MAX_DEPTH`; nothing behind it is known."""

    def __post_init__(self) -> None:
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line_column(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1, columns in characters."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def of_key(self, path: KeyPath) -> tuple[int, int]:
        """Line and column of a key, of the nearest table around it if it is not written; (1, 1) at worst."""
        for length in range(len(path), 0, -1):
            span = self.keys.get(path[:length]) or self.values.get(path[:length])
            if span is not None:
                return self.line_column(span.start)
        return 1, 1

    def of_value(self, path: KeyPath) -> tuple[int, int]:
        """Line and column of a value; where there is none, those of its key."""
        span = self.values.get(path)
        return self.line_column(span.start) if span is not None else self.of_key(path)


def scan(text: str) -> Positions:
    """Find all keys and values of a TOML text with line ends `\\n` and no byte order mark."""
    scanner = _Scanner(text)
    try:
        scanner.document()
    except _TooDeep:
        scanner.found.too_deep = Span(scanner.pos, scanner.pos)
    except _NotUnderstood:
        pass
    return scanner.found


class _NotUnderstood(Exception):
    """The text is not the TOML that was promised."""


class _TooDeep(_NotUnderstood):
    """Nesting that no manifest has."""


class _Scanner:
    """One walk over a text; `pos` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.found = Positions(text)
        self.base: KeyPath = ()
        self.array_lengths: dict[KeyPath, int] = {}
        self.headers: dict[KeyPath, Span] = {}
        self.set_aside = 0
        self.open_duplicate: tuple[KeyPath, Span, Span, int] | None = None

    def document(self) -> None:
        """Statement after statement to the end of the text."""
        self.skip(BLANKS)
        while self.pos < len(self.text):
            if self.text.startswith("[", self.pos):
                self.header()
            else:
                self.assignment(self.base, 0)
            self.skip(BLANKS)
        self.close_duplicate(len(self.text))

    def header(self) -> None:
        """`[table]` or `[[list of tables]]`; the keys that follow belong to it."""
        start = self.pos
        self.close_duplicate(start)
        is_array = self.text.startswith("[[", self.pos)
        self.pos += 2 if is_array else 1
        parts = self.key_parts()
        self.expect("]]" if is_array else "]")
        path: KeyPath = ()
        for part, span in parts[:-1]:
            path += (part,)
            self.found.keys.setdefault(path, span)
            if path in self.array_lengths:
                path += (self.array_lengths[path] - 1,)
        last, span = parts[-1]
        path += (last,)
        if is_array:
            self.base = self.next_of_array(path, span)
        elif path in self.headers or path in self.found.values or path in self.array_lengths:
            self.open_duplicate = (path, self.found.keys[path], span, start)
            self.base = self.aside()
        else:
            self.found.keys.setdefault(path, span)
            self.headers[path] = span
            self.base = path

    def next_of_array(self, path: KeyPath, span: Span) -> KeyPath:
        """Path of the table that one more `[[path]]` opens."""
        self.found.keys.setdefault(path, span)
        index = self.array_lengths.get(path, 0)
        self.array_lengths[path] = index + 1
        self.found.keys[(*path, index)] = span
        return (*path, index)

    def close_duplicate(self, end: int) -> None:
        """A table that was declared before ends here."""
        if self.open_duplicate is not None:
            path, first, second, start = self.open_duplicate
            self.found.duplicates.append(Duplicate(path, first, second, Span(start, end)))
            self.open_duplicate = None

    def aside(self) -> KeyPath:
        """A fresh path that no manifest has, for what is declared again."""
        self.set_aside += 1
        return (-self.set_aside,)

    def assignment(self, base: KeyPath, depth: int, comma: int | None = None) -> None:
        """`key = value`, in a table or between the braces of an inline one, there behind a `comma`."""
        start = self.pos
        simple = SIMPLE.match(self.text, start)
        if simple is not None and (*base, simple.group(1)) not in self.found.keys:
            path = (*base, simple.group(1))
            self.found.keys[path] = Span(*simple.span(1))
            self.found.values[path] = Span(*simple.span(2))
            self.pos = simple.end()
            return
        parts = self.key_parts()
        if len(parts) + depth > MAX_DEPTH:
            raise _TooDeep
        self.expect("=")
        self.skip(SPACES)
        path = base
        for part, span in parts[:-1]:
            path += (part,)
            self.found.keys.setdefault(path, span)
        last, span = parts[-1]
        path += (last,)
        first = self.found.keys.get(path)
        if first is not None and (path in self.found.values or path in self.headers):
            self.value((*self.aside(), "again"), depth)
            statement = Span(start if comma is None else comma, self.pos)
            if self.open_duplicate is None:
                self.found.duplicates.append(Duplicate(path, first, span, statement))
            return
        self.found.keys.setdefault(path, span)
        self.value(path, depth + len(parts))

    def key_parts(self) -> list[tuple[str, Span]]:
        """The parts of a dotted key with their spans, quotes included."""
        parts: list[tuple[str, Span]] = []
        while True:
            self.skip(SPACES)
            start = self.pos
            if len(parts) >= MAX_DEPTH:
                raise _TooDeep
            match = BARE_KEY.match(self.text, start) or STRING.match(self.text, start)
            if match is None:
                raise _NotUnderstood
            self.pos = match.end()
            parts.append((_key_text(match.group()), Span(start, self.pos)))
            self.skip(SPACES)
            if not self.text.startswith(".", self.pos):
                return parts
            self.pos += 1

    def value(self, path: KeyPath, depth: int) -> None:
        """One value of any kind, noted under `path`."""
        start = self.pos
        if depth > MAX_DEPTH:
            raise _TooDeep
        if self.text.startswith("[", start):
            self.array(path, depth + 1)
        elif self.text.startswith("{", start):
            self.inline_table(path, depth + 1)
        else:
            match = STRING.match(self.text, start) or SCALAR.match(self.text, start)
            if match is None:
                raise _NotUnderstood
            self.pos = match.end()
        self.found.values[path] = Span(start, self.pos)

    def array(self, path: KeyPath, depth: int) -> None:
        """`[1, 2]`, over as many lines as it likes."""
        self.pos += 1
        index = 0
        while True:
            self.skip(BLANKS)
            if self.text.startswith("]", self.pos):
                self.pos += 1
                return
            self.value((*path, index), depth)
            index += 1
            self.skip(BLANKS)
            if not self.text.startswith("]", self.pos):
                self.expect(",")

    def inline_table(self, path: KeyPath, depth: int) -> None:
        """`{ a = 1 }`."""
        self.pos += 1
        comma = None
        while True:
            self.skip(BLANKS)
            if self.text.startswith("}", self.pos):
                self.pos += 1
                return
            self.assignment(path, depth, comma)
            self.skip(BLANKS)
            comma = self.pos
            if not self.text.startswith("}", self.pos):
                self.expect(",")

    def skip(self, what: re.Pattern[str]) -> None:
        match = what.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()

    def expect(self, token: str) -> None:
        if not self.text.startswith(token, self.pos):
            raise _NotUnderstood
        self.pos += len(token)


def _key_text(written: str) -> str:
    """What a key says without its quotes and escapes."""
    if written.startswith("'"):
        return written[1:-1]
    if written.startswith('"'):
        return ESCAPE.sub(_unescaped, written[1:-1])
    return written


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1) or match.group(2)
    if code is None:
        return SHORT_ESCAPES.get(match.group(3), match.group(3))
    return chr(int(code, 16)) if int(code, 16) < 0x110000 else match.group()
