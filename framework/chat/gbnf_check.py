"""Is a GBNF text one that the engine may be given? Grammars of clients are hostile.

The engine's own parser recurses with every bracket, copies what is repeated, and its search for left
recursion recurses with every rule, on a thread whose end would be the server's. So its input is bounded here
first. Called for every grammar, those made here included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from framework.chat.gbnf import MAX_GRAMMAR_CHARS, MAX_REPEAT, ROOT, GrammarError

MAX_RULES = 10_000
MAX_DEPTH = 64
"""Brackets within brackets."""
MAX_ELEMENTS = 500_000
"""Characters, classes and references after repetitions were written out."""
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK_IN_LINE = re.compile(r"(?:[ \t]|#[^\n]*)*")
_NAME = re.compile(r"[a-zA-Z0-9-]+")
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_CLASS = re.compile(r"\[\^?(?:[^\]\\\n]|\\.)*\]")
_TOKEN = re.compile(r"!?<(?:\[\d{1,9}\]|[^<>\n]{1,200})>")
_COUNTS = re.compile(r"\{\s*(\d{1,9})\s*(?:(,)\s*(\d{1,9})?\s*)?\}")
_ESCAPES = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[nrt\"\\\[\]])")
_ESCAPE = re.compile(r"\\.")


def check_grammar(text: str) -> None:
    """Raises GrammarError, naming the line, when the engine can't read the text or shouldn't."""
    if len(text) > MAX_GRAMMAR_CHARS:
        raise GrammarError(f"the grammar has {len(text)} characters; {MAX_GRAMMAR_CHARS} are allowed")
    if "\0" in text:
        raise GrammarError("the grammar holds a NUL character")
    rules = _Reader(text).rules()
    if ROOT not in rules:
        raise GrammarError(f"the grammar has no rule named {ROOT}")
    for name, rule in rules.items():
        for target in rule.names:
            if target not in rules:
                raise GrammarError(f"rule {name} uses {target}, which is not defined")
    _refuse_left_recursion(rules)


@dataclass
class _Item:
    """Part of a sequence: what it may start with, and whether it can be empty."""

    starts: list[str | list[list[_Item]]] = field(default_factory=list)
    """Names, and groups as alternatives."""
    empty: bool = False


@dataclass
class _Rule:
    ways: list[list[_Item]]
    names: list[str]


class _Reader:
    """Reads a grammar from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._elements = 0
        self._names: list[str] = []

    def rules(self) -> Mapping[str, _Rule]:
        rules: dict[str, _Rule] = {}
        self._skip(_BLANK)
        while self._at < len(self._text):
            name = self._take(_NAME, "the name of a rule")
            self._skip(_BLANK_IN_LINE)
            if not self._text.startswith("::=", self._at):
                raise self._trouble("::=")
            self._at += 3
            self._skip(_BLANK)
            self._names = []
            rules[name] = _Rule(self._ways(), self._names)
            if self._at < len(self._text) and self._text[self._at] not in "\r\n":
                raise self._trouble("the end of the rule")
            self._skip(_BLANK)
            if len(rules) > MAX_RULES:
                raise GrammarError(f"the grammar has more than {MAX_RULES} rules")
        return rules

    def _ways(self) -> list[list[_Item]]:
        ways = [self._sequence()]
        while self._text.startswith("|", self._at):
            self._at += 1
            self._skip(_BLANK)
            ways.append(self._sequence())
        return ways

    def _sequence(self) -> list[_Item]:
        items: list[_Item] = []
        while (found := self._element()) is not None:
            item, size = found
            self._skip_blank()
            if (counts := self._repetition()) is not None:
                least, most = counts
                item = _Item(item.starts, empty=item.empty or least == 0)
                size *= max(least, most or 1, 1)
                self._skip_blank()
            self._elements += size
            if self._elements > MAX_ELEMENTS:
                raise GrammarError(f"the grammar has more than {MAX_ELEMENTS} elements with its repetitions")
            items.append(item)
        return items

    def _element(self) -> tuple[_Item, int] | None:
        """The next element and its size; None at the end of a sequence."""
        rest = self._text[self._at : self._at + 1]
        if rest == "" or rest in "|)\r\n":
            return None
        if rest == '"':
            literal = self._escaped(_LITERAL, "a literal in double quotes on one line")
            size = len(_ESCAPES.sub("x", literal)) - 2
            return _Item(empty=size == 0), size
        if rest == "[":
            self._escaped(_CLASS, "a character class that ends on its line")
            return _Item(), 1
        if rest == ".":
            self._at += 1
            return _Item(), 1
        if rest in "<!":
            self._take(_TOKEN, "a token in angle brackets")
            return _Item(), 1
        if rest == "(":
            return self._group(), 1
        name = self._take(_NAME, "a literal, a class, a name or a group")
        self._names.append(name)
        return _Item([name]), 1

    def _group(self) -> _Item:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise GrammarError(f"brackets are nested deeper than {MAX_DEPTH}")
        self._at += 1
        self._skip(_BLANK)
        ways = self._ways()
        if not self._text.startswith(")", self._at):
            raise self._trouble("a closing bracket")
        self._at += 1
        self._depth -= 1
        return _Item([ways])

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

    def _escaped(self, pattern: re.Pattern[str], wanted: str) -> str:
        text = self._take(pattern, wanted)
        if _ESCAPE.search(_ESCAPES.sub("", text)):
            raise self._trouble('known escapes (n r t \\ " [ ] x u U) in the element before')
        return text

    def _take(self, pattern: re.Pattern[str], wanted: str) -> str:
        if (found := pattern.match(self._text, self._at)) is None:
            raise self._trouble(wanted)
        self._at = found.end()
        return found[0]

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


def _refuse_left_recursion(rules: Mapping[str, _Rule]) -> None:
    """A rule that starts with itself would be entered for ever."""
    empty = _empty_rules(rules)
    firsts = {name: list(_first_names(rule.ways, empty)) for name, rule in rules.items()}
    done: set[str] = set()
    for start in rules:
        trail: dict[str, Iterator[str]] = {}
        if start not in done:
            trail[start] = iter(firsts[start])
        while trail:
            name = next(reversed(trail))
            following = next(trail[name], None)
            if following is None:
                trail.pop(name)
                done.add(name)
            elif following in trail:
                raise GrammarError(f"rule {following} starts with itself (left recursion)")
            elif following not in done:
                trail[following] = iter(firsts[following])


def _empty_rules(rules: Mapping[str, _Rule]) -> set[str]:
    """Names of rules that match the empty text. Each round finds one more, or all are found."""
    users: dict[str, set[str]] = {}
    for name, rule in rules.items():
        for target in rule.names:
            users.setdefault(target, set()).add(name)
    empty: set[str] = set()
    waiting = set(rules)
    while waiting:
        name = waiting.pop()
        if name not in empty and _can_be_empty(rules[name].ways, empty):
            empty.add(name)
            waiting |= users.get(name, set()) - empty
    return empty


def _can_be_empty(ways: list[list[_Item]], empty: set[str]) -> bool:
    return any(all(_is_empty(item, empty) for item in way) for way in ways)


def _is_empty(item: _Item, empty: set[str]) -> bool:
    if item.empty:
        return True
    return any(
        start in empty if isinstance(start, str) else _can_be_empty(start, empty) for start in item.starts
    )


def _first_names(ways: list[list[_Item]], empty: set[str]) -> Iterator[str]:
    """Rules that can be the first thing of an alternative."""
    for way in ways:
        for item in way:
            for start in item.starts:
                if isinstance(start, str):
                    yield start
                else:
                    yield from _first_names(start, empty)
            if not _is_empty(item, empty):
                break
