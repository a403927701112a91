"""Writing of GBNF, the grammar language of llama.cpp: literals, character classes, names, a set of rules.

Used by chat.schema for JSON schemas and by chat.formats for tool calls. What was written elsewhere is checked
by chat.gbnf_check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_GRAMMAR_CHARS = 1 << 20
"""Size of a whole grammar; beyond it the engine's parser would take seconds."""
MAX_REPEAT = 1999
"""The largest count of a `{m,n}` that the engine's parser takes."""
ROOT = "root"
SPACE = r'| " " | "\n"{1,2} [ \t]{0,20}'
"""Blanks between parts of JSON: bounded, so that no model can go on with them for ever."""
_NAME_PARTS = re.compile(r"[^a-zA-Z0-9]+")
_NOT_SIMPLE = re.compile(r"[^ !#-\[\]-~]")
_LETTER = re.compile(r"[a-zA-Z0-9]")
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\", '"': r"\""}
_MAX_NAME = 48


class GrammarError(ValueError):
    """A grammar that the engine could not, or should not, take. The text is for the client."""


def quote(text: str) -> str:
    """A literal that matches exactly `text`."""
    return '"' + _NOT_SIMPLE.sub(lambda found: _ESCAPES.get(found[0]) or _numbered(found[0]), text) + '"'


def char_class(ranges: Iterable[tuple[int, int]], *, negated: bool = False) -> str:
    """A class of inclusive ranges of code points."""
    parts = []
    for low, high in ranges:
        first, last = (char if _LETTER.fullmatch(char) else _numbered(char) for char in (chr(low), chr(high)))
        parts.append(first if low == high else f"{first}-{last}")
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _numbered(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02X}" if code < 0x80 else f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def repeat(item: str, least: int, most: int | None) -> str:
    """`item` (a name, literal, class or group) from `least` to `most` times; None: without end."""
    counts: dict[tuple[int, int | None], str] = {
        (0, None): "*",
        (1, None): "+",
        (0, 1): "?",
        (1, 1): "",
    }
    if (suffix := counts.get((least, most))) is None:
        suffix = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    return item + suffix


def choice(alternatives: Iterable[str]) -> str:
    """The alternatives, each once, in brackets when there are several."""
    unique = list(dict.fromkeys(alternatives))
    return unique[0] if len(unique) == 1 else "(" + " | ".join(unique) + ")"


class Rules:
    """Rules by name, in the order they were named. Equal rules are kept once."""

    def __init__(self) -> None:
        self._bodies: dict[str, str] = {ROOT: ""}
        self._names: dict[str, str] = {}
        self._shared: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._chars = 0

    def root(self, body: str) -> None:
        """What the whole text has to be."""
        self.fill(ROOT, body)

    def add(self, wish: str, body: str) -> str:
        """Adds a rule under a name like `wish` and returns its name; GrammarError when all gets too large."""
        if body not in self._names:
            name = self.reserve(wish)
            self.fill(name, body)
            self._names[body] = name
        return self._names[body]

    def reserve(self, wish: str) -> str:
        """A name for a rule that is filled later, for rules that refer to themselves."""
        base = _NAME_PARTS.sub("-", wish).strip("-")[:_MAX_NAME].strip("-") or "rule"
        name, count = base, self._counts.get(base, 1)
        while name in self._bodies:
            count += 1
            name = f"{base}-{count}"
        self._counts[base] = count
        self._bodies[name] = ""
        return name

    def fill(self, name: str, body: str) -> None:
        """The body of a reserved name."""
        self._bodies[name] = body
        self._chars += len(name) + len(body)
        if self._chars > MAX_GRAMMAR_CHARS:
            raise GrammarError(f"the grammar would have more than {MAX_GRAMMAR_CHARS} characters")

    def shared(self, key: str, body: str) -> str:
        """The name of a rule that everybody who knows the key uses; added the first time."""
        if key not in self._shared:
            self._shared[key] = self.add(key, body)
        return self._shared[key]

    def shared_later(self, key: str) -> tuple[str, bool]:
        """As `shared`, for a rule that refers to itself: its name, and whether the caller has to fill it."""
        if key in self._shared:
            return self._shared[key], False
        self._shared[key] = self.reserve(key)
        return self._shared[key], True

    def space(self) -> str:
        """The name of the rule for blanks."""
        return self.shared("space", SPACE)

    def text(self) -> str:
        """The whole grammar."""
        return "".join(f"{name} ::= {body}\n" for name, body in self._bodies.items())


def add_until(rules: Rules, wish: str, end: str) -> str:
    """A rule for any text that does not hold `end`, which the caller puts behind it.

    One rule per character of `end` that was seen last, as in the search of Knuth, Morris and Pratt.
    """
    states = [rules.reserve(f"{wish}-{seen}" if seen else wish) for seen in range(len(end))]
    for seen, name in enumerate(states):
        targets: dict[int, list[str]] = {}
        for char in sorted(set(end)):
            if (reached := _overlap(end, end[:seen] + char)) < len(end):
                targets.setdefault(reached, []).append(char)
        moves = [
            f"{char_class((ord(char), ord(char)) for char in chars)} {states[reached]}"
            for reached, chars in targets.items()
            if reached
        ]
        others = char_class(
            ((ord(char), ord(char)) for char in sorted(set(end)) if char not in targets.get(0, ())),
            negated=True,
        )
        rules.fill(name, " | ".join(["", *moves, f"{others} {states[0]}"]).strip())
    return states[0]


def _overlap(end: str, text: str) -> int:
    """Length of the longest start of `end` that `text` ends with."""
    return next(size for size in range(min(len(end), len(text)), -1, -1) if text.endswith(end[:size]))
