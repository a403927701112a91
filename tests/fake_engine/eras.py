"""Builds of other times: what their help lists, and how their parser differs from that of build b10068.

The help of an era of mainline is that of b10068 without what came later, and with the entries of
`tests/data/eras/<era>.txt` in place of those that share a flag; the fork's is a text of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Literal

DATA = Path(__file__).parent.parent / "data"
REAL_HELP = DATA / "llama-server-help-b10068.txt"
Name = Literal["plain", "old", "renamed", "lists", "new", "newest", "fork"]
DRAFTING = r"--(?:spec|draft)-|--draft,"
AFTER_2025 = rf"{DRAFTING}|--fit|--kv-unified|--cache-ram|--cache-idle|-checkpoint|cpu-moe"


@dataclass(frozen=True)
class Era:
    """One build."""

    version: str
    lacks: str = ""
    """Pattern of declarations that are not in its help."""
    is_own_text: bool = False
    unknown_flag: str = "error: invalid argument: {}"
    unknown_type: str = 'error while handling argument "--spec-type": unknown speculative type: {}'
    adds_types: bool = True
    """Each `--spec-type` adds to those before it; otherwise the last one counts, and is a single one."""
    drafts_by_itself: bool = False
    """A drafter alone switches drafting on."""
    trace_level: str | None = None
    """Verbosity at which devices and buffers are printed; None where they always are."""


ERAS: dict[Name, Era] = {
    # Of 2025: flags that have become words were switches, and there was no fit step.
    "plain": Era("version: 5604 (9c4e2d71b)\nbuilt with cc", lacks=AFTER_2025),
    # Early 2026, before the flags of speculation were renamed.
    "old": Era(
        "version: 8900 (4d0ab2c31)\nbuilt with cc",
        lacks=DRAFTING,
        unknown_type='error while handling argument "--spec-type": unknown speculative decoding type {}',
        adds_types=False,
        drafts_by_itself=True,
    ),
    # About b9010: new flags, stubs for the old ones, one type at a time.
    "renamed": Era(
        "version: 9010 (77b1f09ce)\nbuilt with cc",
        lacks="--spec-default|--spec-draft-backend-sampling",
        unknown_type='error while handling argument "--spec-type": unknown speculative decoding type {}',
        adds_types=False,
        drafts_by_itself=True,
    ),
    # About b9200: lists of types, heads.
    "lists": Era("version: 9200 (e3a75d0f2)\nbuilt with cc", lacks="--spec-draft-backend-sampling"),
    "new": Era("version: 1 (571d0d5)\nbuilt with GNU 11.4.0 for Linux x86_64", trace_level="4"),
    # About b10900: the flags of memory mapping are gone without a stub, versions have names.
    "newest": Era(
        "version: 0.4.2-dev (build 10900, commit 5ad9e3b07)\nbuilt with cc",
        lacks="--mmap|--mlock|--direct-io",
        drafts_by_itself=True,
        trace_level="4",
    ),
    # A fork with a help text of the old form, types with their settings, and no words but its own.
    "fork": Era(
        "version: 4113 (c0ffee12)\nbuilt with cc",
        is_own_text=True,
        unknown_flag="error: unknown argument: {}",
        unknown_type='error while handling argument "--spec-type": unknown type {}',
    ),
}


@cache
def help_text(name: Name) -> str:
    """What `--help` prints."""
    era = ERAS[name]
    if era.is_own_text:
        return (DATA / "eras" / f"{name}.txt").read_text(encoding="utf-8")
    heading, *real = blocks(REAL_HELP.read_text(encoding="utf-8"))
    if name == "new":
        return "\n".join((heading, *real))
    own = [block for block in blocks((DATA / "eras" / f"{name}.txt").read_text(encoding="utf-8")) if block]
    replaced = {flag for block in own for flag in long_flags(block)}
    kept = [
        block
        for block in real
        if replaced.isdisjoint(long_flags(block))
        and not (era.lacks and re.search(era.lacks, block.split("\n")[0]))
    ]
    return "\n".join((heading, *kept, *own))


def blocks(text: str) -> list[str]:
    """The text cut before every entry, as a whole again when joined by line breaks."""
    indented = not re.search(r"^-{1,2}[a-z]", text, re.MULTILINE)
    return re.split(r"\n(?= {2,9}-{1,2}[a-z])" if indented else r"\n(?=-)", "\n" + text)


def long_flags(block: str) -> Iterator[str]:
    """Long flags of the declaration of a block, not those that its text speaks of."""
    tokens = re.split(r"[,\s]+", block.split("\n", maxsplit=1)[0])
    return (token for token in takewhile(lambda one: one.startswith("-"), tokens) if token.startswith("--"))
