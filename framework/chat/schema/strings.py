"""Strings of a JSON schema: lengths, patterns and formats."""

from __future__ import annotations

from framework.chat.gbnf import MAX_REPEAT, repeat
from framework.chat.schema.patterns import pattern_body
from framework.chat.schema.visitor import Schema, SchemaError, Visitor, limits_of

CHAR = r'[^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt/] | "u" [0-9a-fA-F]{4})'
_DATE = '[0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [1-2] [0-9] | "3" [0-1])'
_TIME = (
    '([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,9})? '
    '("Z" | [+-] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])'
)
_BYTE = '("25" [0-5] | "2" [0-4] [0-9] | "1" [0-9] [0-9] | [1-9] [0-9] | [0-9])'
FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f'{_DATE} "T" {_TIME}',
    "uuid": '[0-9a-fA-F]{8} "-" [0-9a-fA-F]{4} "-" [0-9a-fA-F]{4} "-" [0-9a-fA-F]{4} "-" [0-9a-fA-F]{12}',
    "ipv4": f'{_BYTE} ("." {_BYTE}){{3}}',
}
"""Formats that are enforced; every other one is for the client to check."""


def string_rule(visitor: Visitor, schema: Schema, wish: str, path: str) -> str:
    """A pattern wins over a format, and a format over lengths: a grammar can't intersect them."""
    pattern, form = schema.get("pattern"), schema.get("format")
    if pattern is not None:
        if not isinstance(pattern, str):
            raise SchemaError(path, f"pattern has to be a string, not {type(pattern).__name__}")
        body = pattern_body(pattern, visitor.string_char(), path)
        return visitor.rules.add(wish, f'"\\"" ({body}) "\\""')
    if isinstance(form, str) and form in FORMATS:
        inside = visitor.rules.shared(f"{form}-text", FORMATS[form])
        return visitor.rules.add(f"{form}-string", f'"\\"" {inside} "\\""')
    least, most = limits_of(schema, "minLength", "maxLength", path)
    if least > MAX_REPEAT:
        raise SchemaError(path, f"minLength is {least}; a grammar counts to {MAX_REPEAT}")
    if most is not None and most > MAX_REPEAT:
        most = None  # too far to count: the client's own check remains
    if least == 0 and most is None:
        return visitor.string()
    return visitor.rules.add(wish, f'"\\"" {repeat(visitor.string_char(), least, most)} "\\""')
