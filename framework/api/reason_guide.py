"""What reasons mean: docs/reasons.md, read into values for the API and the pages.

That page is the one source, for people who read it as a file and for those who follow a link. Of Markdown
only what it uses is understood: headings, paragraphs, tables, `code` and links. Pure but for reading it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from framework.web_assets import docs_dir

CODE_HEADER = ("code", "means", "what to do")
CELLS = re.compile(r"(?<!\\)\|")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Explanation:
    """One row of the page. A code has several where it can come about in several ways."""

    code: str
    section: str
    means: str
    remedy: str


@dataclass(frozen=True)
class Table:
    """A table that explains no code by itself."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it, in order. Texts keep their `code` marks and lose their links."""

    title: str
    blocks: tuple[str | Table | tuple[Explanation, ...], ...]

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """The rows that explain a code."""
        found = (block for block in self.blocks if isinstance(block, tuple))
        return tuple(one for block in found for one in block)

    @property
    def opening(self) -> str:
        """The paragraph below the heading; empty where a table comes first."""
        return self.blocks[0] if self.blocks and isinstance(self.blocks[0], str) else ""


@dataclass(frozen=True)
class ReasonGuide:
    """The whole page. Empty where the file is missing."""

    sections: tuple[Section, ...] = ()

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """Every code that is explained, in the order of the page."""
        return tuple(dict.fromkeys(one.code for part in self.sections for one in part.explanations))

    def explain(self, code: str) -> tuple[Explanation, ...]:
        """What the page says of a code; nothing for one that it does not know."""
        return tuple(one for part in self.sections for one in part.explanations if one.code == code)

    def section(self, title: str) -> Section:
        """A part of the page. KeyError for one that is not there."""
        return {part.title: part for part in self.sections}[title]

    def mentions(self, code: str) -> tuple[str, ...]:
        """Paragraphs that name a code, and what other codes are told to mean where that names it."""
        mark = f"`{code}`"
        return tuple(text for part in self.sections for text in _texts(part, code) if mark in text)


@cache
def installed_guide() -> ReasonGuide:
    """The page that came with this program."""
    return read_guide(docs_dir() / "reasons.md")


def read_guide(path: Path) -> ReasonGuide:
    """The page in this file. What cannot be read explains nothing: pages work without."""
    try:
        return parse_guide(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return ReasonGuide()


def parse_guide(text: str) -> ReasonGuide:
    """The sections of a page; what stands before the first heading of the second level is left out."""
    parts = re.split(r"^## +", text, flags=re.MULTILINE)[1:]
    return ReasonGuide(tuple(_section(part) for part in parts))


def reasons_json(guide: ReasonGuide) -> dict[str, Any]:
    """The shape of `/reasons`, in the order of the page."""
    return {
        "reasons": [
            {"code": one.code, "section": part.title, "means": one.means, "remedy": one.remedy}
            for part in guide.sections
            for one in part.explanations
        ]
    }


def _section(text: str) -> Section:
    title, _, body = text.partition("\n")
    return Section(_plain(title).replace("`", ""), tuple(_blocks(_plain(title).replace("`", ""), body)))


def _blocks(title: str, body: str) -> Iterator[str | Table | tuple[Explanation, ...]]:
    lines = [line.strip() for line in body.splitlines()]
    for is_text, block in groupby(lines, key=bool):
        if not is_text:
            continue
        rows = list(block)
        yield _table(title, rows) if rows[0].startswith("|") else _plain(" ".join(rows))


def _table(title: str, lines: Iterable[str]) -> Table | tuple[Explanation, ...]:
    header, _, *rows = (_cells(line) for line in lines)
    if header != CODE_HEADER:
        return Table(header, tuple(rows))
    return tuple(Explanation(code.strip("`"), title, means, remedy) for code, means, remedy in rows)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(_plain(cell.strip()) for cell in CELLS.split(line)[1:-1])


def _plain(text: str) -> str:
    """Text whose links are their words alone: other pages of the documentation are not served."""
    return LINK.sub(r"\1", text.strip()).replace("\\|", "|")


def _texts(part: Section, code: str) -> Iterator[str]:
    for block in part.blocks:
        if isinstance(block, str):
            yield block
        elif isinstance(block, Table):
            yield from (", ".join(cell for cell in row if cell) for row in block.rows)
        else:
            yield from (f"`{one.code}`: {one.means}" for one in block if one.code != code)
