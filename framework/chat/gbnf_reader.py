"""Reads GBNF into tables: each rule as alternatives of terminals and rules, with groups and repetitions as
rules of their own, the way the engine's parser makes them.

Called by chat.gbnf_check. Refuses what that parser can't read, or would read without an end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from framework.chat.gbnf import MAX_REPEAT, GrammarError
from framework.chat.schema import charset
from framework.chat.schema.charset import Ranges

MAX_RULES = 8192
"""Rules, groups and repetitions."""
MAX_DEPTH = 64
"""Brackets within brackets."""
MAX_ELEMENTS = 500_000
"""Characters, classes and references after repetitions were written out."""
Node = int | Ranges
"""The number of a rule, or a terminal: the characters it takes. A token is one behind the last character."""
_MAX_TOKEN = 10**9
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK_IN_LINE = re.compile(r"(?:[ \t]|#[^\n]*)*")
_NAME = re.compile(r"[a-zA-Z0-9-]+")
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_CLASS = re.compile(r"\[(\^?)((?:[^\]\\\n]|\\.)*)\]")
_TOKEN = re.compile(r"(!?)<(?:\[(\d{1,9})\]|[^<>\n]{1,200})>")
_COUNTS = re.compile(r"\{\s*(\d{1,9})\s*(?:(,)\s*(\d{1,9})?\s*)?\}")
_CHAR = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([nrt\"\\\[\]]))|([^\\])")
_CONTROLS = {"n": 10, "r": 13, "t": 9}


@dataclass
class RuleTable:
    """Rules by number; those that were named can be found by their name."""

    numbers: dict[str, int] = field(default_factory=dict)
    rules: list[list[list[Node]] | None] = field(default_factory=list)
    """Alternatives of each rule, each a sequence; None: named, but not defined."""
    names: list[str] = field(default_factory=list)
    """Of each rule; a group has the name of the rule that it is part of."""
    counted: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Rules that count: the first of its kind, and how many more it allows."""

    def add(self, name: str) -> int:
        """A rule without a name of its own, or one that is filled later."""
        self.rules.append(None)
        self.names.append(name)
        return len(self.rules) - 1

    def named(self, name: str) -> int:
        """The rule of this name, which may not be defined yet."""
        if name not in self.numbers:
            self.numbers[name] = self.add(name)
        return self.numbers[name]


def read_grammar(text: str) -> RuleTable:
    """Raises GrammarError, naming the line."""
    return _Reader(text).table()


class _Reader:
    """Reads a grammar from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._elements = 0
        self._n_rules = 0
        self._name = ""
        self._table = RuleTable()

    def table(self) -> RuleTable:
        self._skip(_BLANK)
        while self._at < len(self._text):
            self._name = self._take(_NAME, "the name of a rule")[0]
            self._skip(_BLANK_IN_LINE)
            if not self._text.startswith("::=", self._at):
                raise self._trouble("::=")
            self._at += 3
            self._count_rule()
            self._skip(_BLANK)
            number = self._table.named(self._name)
            self._table.rules[number] = self._ways()
            if self._at < len(self._text) and self._text[self._at] not in "\r\n":
                raise self._trouble("the end of the rule")
            self._skip(_BLANK)
        return self._table

    def _count_rule(self) -> None:
        self._n_rules += 1
        if self._n_rules > MAX_RULES:
            raise GrammarError(f"the grammar has more than {MAX_RULES} rules, groups and repetitions")

    def _ways(self) -> list[list[Node]]:
        ways = [self._sequence()]
        while self._text.startswith("|", self._at):
            self._at += 1
            self._skip(_BLANK)
            ways.append(self._sequence())
        return ways

    def _sequence(self) -> list[Node]:
        nodes: list[Node] = []
        while (found := self._element()) is not None:
            self._skip_blank()
            while (counts := self._repetition()) is not None:
                found = self._repeated(found, *counts)
                self._skip_blank()
            self._count(len(found))
            nodes += found
        return nodes

    def _count(self, n_elements: int) -> None:
        self._elements += n_elements
        if self._elements > MAX_ELEMENTS:
            raise GrammarError(f"the grammar has more than {MAX_ELEMENTS} elements with its repetitions")

    def _repeated(self, part: list[Node], least: int, most: int | None) -> list[Node]:
        """The part so many times: first those that have to be there, then a rule for the others."""
        self._count_rule()
        self._count(len(part) * (least + 1 if most is None else most))
        nodes = part * least
        if most is None:
            number = self._table.add(self._name)
            self._table.rules[number] = [[*part, number], []]
            return [*nodes, number]
        rest: list[Node] = []
        first = len(self._table.rules)
        for left in range(1, most - least + 1):
            number = self._table.add(self._name)
            self._table.rules[number] = [[*part, *rest], []]
            self._table.counted[number] = first, left
            rest = [number]
        return nodes + rest

    def _element(self) -> list[Node] | None:
        """The next element; None at the end of a sequence."""
        rest = self._text[self._at : self._at + 1]
        if rest == "" or rest in "|)\r\n":
            return None
        if rest == '"':
            literal = self._take(_LITERAL, "a literal in double quotes on one line")[1]
            return [((code, code),) for code in self._codes(literal)]
        if rest == "[":
            return [self._class()]
        if rest == ".":
            self._at += 1
            return [charset.ALL]
        if rest in "<!":
            return [_token(self._take(_TOKEN, "a token in angle brackets"))]
        if rest == "(":
            return [self._group()]
        return [self._table.named(self._take(_NAME, "a literal, a class, a name or a group")[0])]

    def _class(self) -> Ranges:
        found = self._take(_CLASS, "a character class that ends on its line")
        codes = self._codes(found[2])
        # A dash between two characters makes a range, as in the engine even an escaped one.
        ranges, at = [], 0
        while at < len(codes):
            is_range = at + 2 < len(codes) and codes[at + 1] == ord("-")
            ranges.append((codes[at], codes[at + 2] if is_range else codes[at]))
            at += 3 if is_range else 1
        # A range that runs backwards holds nothing.
        members = charset.union([tuple(part for part in ranges if part[0] <= part[1])])
        return charset.complement(members) if found[1] else members

    def _codes(self, text: str) -> list[int]:
        """The characters of a literal or a class, escapes resolved."""
        codes: list[int] = []
        at = 0
        while at < len(text):
            if (found := _CHAR.match(text, at)) is None:
                raise self._trouble('known escapes (n r t \\ " [ ] x u U) in the element before')
            at = found.end()
            if numbered := found[1] or found[2] or found[3]:
                codes.append(int(numbered, 16))
            else:
                codes.append(_CONTROLS.get(found[4], ord(found[4])) if found[4] else ord(found[5]))
        return codes

    def _group(self) -> int:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise GrammarError(f"brackets are nested deeper than {MAX_DEPTH}")
        self._count_rule()
        self._at += 1
        self._skip(_BLANK)
        number = self._table.add(self._name)
        self._table.rules[number] = self._ways()
        if not self._text.startswith(")", self._at):
            raise self._trouble("a closing bracket")
        self._at += 1
        self._depth -= 1
        return number

    def _repetition(self) -> tuple[int, int | None] | None:
        sign = self._text[self._at : self._at + 1]
        if sign and sign in "*+?":
            self._at += 1
            return (1 if sign == "+" else 0), (1 if sign == "?" else None)
        if sign != "{":
            return None
        counts = _COUNTS.match(self._text, self._at)
        if counts is None:
            raise self._trouble("counts like {2}, {2,} or {2,5}")
        least = int(counts[1])
        most = int(counts[3]) if counts[3] else None if counts[2] else least
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise self._trouble(f"counts in rising order that are at most {MAX_REPEAT}")
        self._at = counts.end()
        return least, most

    def _take(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        if (found := pattern.match(self._text, self._at)) is None:
            raise self._trouble(wanted)
        self._at = found.end()
        return found

    def _skip_blank(self) -> None:
        """Within brackets a sequence may go on in the next line."""
        self._skip(_BLANK if self._depth else _BLANK_IN_LINE)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        if found := pattern.match(self._text, self._at):
            self._at = found.end()

    def _trouble(self, wanted: str) -> GrammarError:
        line = self._text.count("\n", 0, self._at) + 1
        near = self._text[self._at : self._at + 20].split("\n", maxsplit=1)[0]
        return GrammarError(f"line {line} of the grammar: expected {wanted}, found {near or 'the end'!r}")


def _token(found: re.Match[str]) -> Ranges:
    """A token by its number; one by its text may be any."""
    first = charset.LAST + 1
    if found[2] is None:
        return ((first, first + _MAX_TOKEN),)
    code = first + int(found[2])
    if not found[1]:
        return ((code, code),)
    return tuple(part for part in ((first, code - 1), (code + 1, first + _MAX_TOKEN)) if part[0] <= part[1])
