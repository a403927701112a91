"""Regular expressions of JSON schemas as GBNF: ECMA-262 without look-around and references.

Called by schema.strings. An expression that isn't anchored may be found anywhere in the text, as the standard
of JSON schema says.
"""

from __future__ import annotations

import re

from framework.chat.gbnf import MAX_REPEAT, repeat
from framework.chat.schema import charset
from framework.chat.schema.charset import Ranges
from framework.chat.schema.visitor import SchemaError

MAX_CHARS = 2000
MAX_DEPTH = 32
_QUANTIFIERS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_COUNTED = re.compile(r"\{(\d{1,9})(?:(,)(\d{1,9})?)?\}")
_CLASSES: dict[str, Ranges] = {"d": charset.DIGITS, "w": charset.WORD, "s": charset.BLANKS}
_CONTROLS = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "0": 0}
_HEX = {"x": re.compile(r"[0-9a-fA-F]{2}"), "u": re.compile(r"[0-9a-fA-F]{4}|\{[0-9a-fA-F]{1,6}\}")}
_GROUP = re.compile(r"\?:|\?P?<[A-Za-z_]\w*>")
_NOTHING = '""'


def pattern_body(pattern: str, any_char: str, path: str) -> str:
    """What matches inside the quotes of a JSON string; `any_char` is the rule for one character of it."""
    if len(pattern) > MAX_CHARS:
        raise SchemaError(path, f"the pattern has {len(pattern)} characters; {MAX_CHARS} are allowed")
    return _Reader(pattern, any_char, path).whole()


class _Reader:
    """Reads one expression from left to right; every method returns GBNF."""

    def __init__(self, pattern: str, any_char: str, path: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._any_char = any_char
        self._path = path
        self._depth = 0

    def whole(self) -> str:
        ways = self._ways(top=True)
        if self._at < len(self._pattern):
            raise self._trouble("a closing bracket without an opening one")
        return " | ".join(ways)

    def _ways(self, *, top: bool) -> list[str]:
        ways = [self._sequence(top=top)]
        while self._take("|"):
            ways.append(self._sequence(top=top))
        return ways

    def _sequence(self, *, top: bool) -> str:
        """Alternatives of the outermost level may be open at both ends."""
        rest = f"{self._any_char}*"
        items = [] if not top or self._take("^") else [rest]
        closed = False
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            if closed:
                raise self._trouble("$ is supported at the end only")
            if top and self._take("$"):
                closed = True
                continue
            items.append(self._quantified())
        if top and not closed:
            items.append(rest)
        return " ".join(item for item in items if item) or _NOTHING

    def _quantified(self) -> str:
        item = self._atom()
        least, most = 1, 1
        if (sign := self._peek()) in _QUANTIFIERS:
            self._at += 1
            least, most = _QUANTIFIERS[sign]  # type: ignore[assignment]
        elif counted := _COUNTED.match(self._pattern, self._at):
            self._at = counted.end()
            least, most = self._counts(counted)
        else:
            return item
        self._take("?")  # how eagerly it matches makes no difference to what it matches
        if self._peek() in (*_QUANTIFIERS, "{"):
            raise self._trouble("a quantifier on a quantifier")
        return repeat(item, least, most)

    def _counts(self, counted: re.Match[str]) -> tuple[int, int]:
        least = int(counted[1])
        most = least if counted[2] is None else int(counted[3]) if counted[3] else None
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise self._trouble(f"the count {counted[0]}; from 0 to {MAX_REPEAT} in rising order is possible")
        return least, most  # type: ignore[return-value]

    def _atom(self) -> str:
        char = self._pattern[self._at]
        self._at += 1
        if char == "(":
            return self._group()
        if char == "[":
            return self._one_of(self._class())
        if char == ".":
            return self._one_of(charset.complement(charset.LINE_ENDS))
        if char == "\\":
            return self._one_of(self._escape())
        if char in "*+?^$":
            raise self._trouble(f"{char!r} at this place")
        return charset.text_in_json(char)

    def _group(self) -> str:
        if opening := _GROUP.match(self._pattern, self._at):
            self._at = opening.end()
        elif self._peek() == "?":
            raise self._trouble("look-around or flags")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._trouble(f"groups nested deeper than {MAX_DEPTH}")
        ways = self._ways(top=False)
        if not self._take(")"):
            raise self._trouble("an opening bracket without a closing one")
        self._depth -= 1
        return f"({' | '.join(ways)})"

    def _class(self) -> Ranges:
        negated, parts = self._take("^"), list[Ranges]()
        while not self._take("]"):
            low = self._member()
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._member()
                if not _is_one(low) or not _is_one(high) or low[0][0] > high[0][0]:
                    raise self._trouble("a range whose ends are not two rising characters")
                low = ((low[0][0], high[0][0]),)
            parts.append(low)
        ranges = charset.union(parts)
        return charset.complement(ranges) if negated else ranges

    def _member(self) -> Ranges:
        if (char := self._peek()) == "":
            raise self._trouble("a class without its closing bracket")
        self._at += 1
        if char != "\\":
            return ((ord(char), ord(char)),)
        if self._peek() == "b":
            self._at += 1
            return ((8, 8),)
        return self._escape()

    def _escape(self) -> Ranges:
        """What follows a backslash, as a set of characters."""
        char = self._peek()
        self._at += 1
        if char.lower() in _CLASSES and char:
            ranges = _CLASSES[char.lower()]
            return charset.complement(ranges) if char.isupper() else ranges
        if char in _CONTROLS:
            code = _CONTROLS[char]
        elif char in _HEX and (digits := _HEX[char].match(self._pattern, self._at)):
            self._at = digits.end()
            code = int(digits[0].strip("{}"), 16)
        elif not char or char.isalnum():
            raise self._trouble(f"the escape \\{char}")
        else:
            code = ord(char)
        if code > charset.LAST:
            raise self._trouble("a character beyond U+10FFFF")
        return ((code, code),)

    def _one_of(self, ranges: Ranges) -> str:
        if (written := charset.in_json(ranges)) is None:
            raise self._trouble("a character that a JSON string can't hold")
        return written

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self, char: str) -> bool:
        if self._peek() != char:
            return False
        self._at += 1
        return True

    def _trouble(self, what: str) -> SchemaError:
        near = self._pattern[max(0, self._at - 12) : self._at + 4]
        return SchemaError(self._path, f"the pattern is not supported near {near!r}: {what}")


def _is_one(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]
