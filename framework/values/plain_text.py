"""Foreign text made harmless to look at: what is invisible or moves other text is written out. Pure.

Model files, engines, clients and manifests hold text of strangers. Whatever shows such text on a terminal, in
a log, on a page or in an answer calls this first, and escapes for its own medium afterwards.
"""

from __future__ import annotations

import re

# C0 and C1 controls (a terminal obeys them), marks, overrides and isolates of text direction, blanks without
# width, line separators that are no line feed, the byte order mark, anchors of annotations, tag characters
# (they spell text that nobody sees), and lone surrogates, which no encoding takes.
INVISIBLE = (
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff"
)
HIDDEN = re.compile(f"[\x00-\x1f\x7f-\x9f{INVISIBLE}]")
HIDDEN_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{INVISIBLE}]")
SURROGATE = re.compile("[\ud800-\udfff]")
QUOTED_LENGTH = 300
BYTE_LIMIT, SHORT_LIMIT = 0xFF, 0xFFFF
# How the system's names are decoded: a byte that is no UTF-8 becomes 0xDC00 and itself.
ESCAPED_BYTE, LAST_ESCAPED_BYTE = 0xDC80, 0xDCFF


def visible(text: str) -> str:
    """One line of text with every hidden character as `\\x1b`, `\\u202e` or `\\U000e0041`."""
    return HIDDEN.sub(_escape, text)


def visible_lines(text: str) -> str:
    """The same for text of several lines: tabs and line feeds stay."""
    return HIDDEN_IN_LINES.sub(_escape, text)


def brief(text: str, most: int = QUOTED_LENGTH) -> str:
    """A stranger's text as it may stand in a sentence: one line, at most so many characters of it."""
    shown = visible(text.strip()[: most + 1])
    return shown if len(shown) <= most else f"{shown[:most].rstrip()}..."


def encodable(text: str) -> str:
    """Text that every encoding takes: a byte of a file's name that is no UTF-8 is shown as `\\xff`.

    Everything else stays. Called where answers and pages are encoded.
    """
    return SURROGATE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if ESCAPED_BYTE <= code <= LAST_ESCAPED_BYTE:
        code &= BYTE_LIMIT
    if code <= BYTE_LIMIT:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= SHORT_LIMIT else f"\\U{code:08x}"
