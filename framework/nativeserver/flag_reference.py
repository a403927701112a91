"""The table of flags for docs/native.md, in Markdown. Called by whoever writes that page. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from framework.nativeserver.flags.flag import Flag
from framework.nativeserver.flags.table import SECTIONS

HEAD = ("| Flag | Default | Variable | What it does |", "|---|---|---|---|")


def reference_table() -> str:
    """Every flag that the help text lists, a table for each group."""
    return "\n".join(
        line
        for section in SECTIONS
        for line in (f"### {section.title.capitalize()}", "", *HEAD, *_rows(section.flags), "")
    )


def _rows(flags: tuple[Flag, ...]) -> Iterator[str]:
    for flag in flags:
        word = "" if flag.value is None else f" {flag.value.word}"
        names = ", ".join(f"`{spelling}`" for spelling in flag.spellings[:-1])
        last = f"`{flag.spellings[-1]}{word}`"
        variable = f"`{flag.variable}`" if flag.variable else ""
        cells = (f"{names}, {last}" if names else last, flag.default, variable, flag.help.replace("\n", " "))
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
