"""Sentences for what tomli says about text that is not TOML. Called by `document.py`.

tomli reports one error as text with its place inside; this is the one spot that takes it apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
# Python refuses to turn longer digit strings into a number, without saying where they stand.
VERY_LONG_NUMBER = re.compile(r"[0-9_]{4300,}")

LONE_CARRIAGE_RETURN = (
    "not valid TOML: a carriage return stands alone here; save the file with line ends LF or CRLF"
)
SENTENCES = (
    ("Invalid value", "there is no value here that TOML knows; text needs quotes"),
    ("Invalid statement", "this is neither a [table] nor a key = value line"),
    (
        "Invalid initial character for a key part",
        "a key is expected here; keys other than a-z 0-9 _ - need quotes",
    ),
    (
        "Expected newline or end of document",
        "there is something left behind the value; one statement per line",
    ),
    ("Expected '=' after a key", "an = is missing behind the key"),
    ("Expected ']]'", "the ]] of this header is missing"),
    ("Expected ']'", "the ] of this header is missing"),
    ("Expected \"'''\"", "the text that opens with ''' is not closed"),
    ('Expected "\'"', "the text that opens with ' is not closed on its line"),
    ("Unterminated string", 'the text that opens with " is not closed'),
    ("Unclosed array", "the list is not closed with ], or a comma is missing"),
    (
        "Unclosed inline table",
        "the table is not closed with }, or a comma is missing; it must stand on one line",
    ),
    ("Unescaped '\\'", "a \\ inside \"…\" must be written \\\\, or put the text in '…'"),
    ("Invalid hex value", "\\u needs 4 and \\U 8 hexadecimal digits"),
    ("Escaped character is not", "this escape is no character"),
    ("Illegal character '\\n'", "the text is not closed on its line"),
    ("Illegal character", "a control character stands here; write it as \\uXXXX"),
    ("Found invalid character", "a control character stands here"),
    ("Invalid date or datetime", "this is no date"),
    ("Cannot declare", "this table is declared twice"),
    ("Cannot overwrite a value", "this key has a value already"),
    ("Cannot mutate immutable namespace", "a list or table that is written out cannot be added to"),
    ("Cannot redefine namespace", "this table is declared already"),
    ("Duplicate inline table key", "this key stands twice in the table"),
)


@dataclass(frozen=True)
class TomlError:
    """An error of tomli in our words; line and column from 1."""

    message: str
    line: int
    column: int


def explain(text: str, error: Exception) -> TomlError:
    """What tomli raised for `text`, as a sentence with its place."""
    said = str(error)
    long_number = VERY_LONG_NUMBER.search(text)
    place = PLACE.search(said)
    if place is None and long_number is not None:
        return TomlError(
            "not valid TOML: this number has too many digits", *_line_column(text, long_number.start())
        )
    if place is None:
        return TomlError("not valid TOML", 1, 1)
    line, column = place.groups()
    said = said[: place.start()]
    end = _line_column(text, len(text.rstrip()))
    where = (int(line), int(column)) if line else end
    lone = text.find("\r")
    if lone >= 0 and (line is None or where >= _line_column(text, lone)):
        return TomlError(LONE_CARRIAGE_RETURN, *_line_column(text, lone))
    sentence = next(
        (ours for theirs, ours in SENTENCES if said.startswith(theirs)), said[:1].lower() + said[1:]
    )
    return TomlError(f"not valid TOML: {sentence}", *where)


def _line_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1
