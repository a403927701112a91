"""The command line of llama-server: a parser that refuses what that of the era refuses.

Flags, their spellings and whether they take values are read from the help text itself (15 §1-2).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NoReturn

from tests.fake_engine import eras

REMOVED = "the argument has been removed"
TYPES = "--spec-type"


@dataclass(frozen=True)
class Flag:
    """One entry of the help text: every spelling, how many values follow, and its text."""

    names: tuple[str, ...]
    values: int
    text: str

    @property
    def takes_value(self) -> bool:
        return self.values > 0


@cache
def known_flags(era: eras.Name) -> dict[str, Flag]:
    """Every spelling of every flag that the help text of an era lists."""
    found: dict[str, Flag] = {}
    for block in eras.blocks(eras.help_text(era)):
        names, values = _declared(block.split("\n")[0])
        found.update(dict.fromkeys(names, Flag(names, values, block.strip("\n"))))
    return found


def _declared(line: str) -> tuple[tuple[str, ...], int]:
    """Spellings, and the number of values: what stands one blank behind the last spelling."""
    names: list[str] = []
    end = 0
    for token in re.finditer(r"[^\s,]+,?", line):
        name = token.group().rstrip(",")
        if not re.fullmatch(r"-{1,2}[A-Za-z][\w-]*", name):
            break
        names.append(name)
        end = token.end()
    rest = line[end:]
    if not names or not re.match(r" [^ ]", rest):
        return tuple(names), 0
    return tuple(names), 2 if re.fullmatch(r"[A-Z]+ [A-Z]+", re.split(r"\s{2,}", rest.strip())[0]) else 1


def refuse(message: str, flag: Flag | None = None) -> NoReturn:
    """End as the real parser ends: the message, the usage of the flag, exit status 1."""
    usage = "" if flag is None else f"\n\nusage:\n{flag.text}\n\n\nto show complete usage, run with -h"
    print(message + usage, file=sys.stderr, flush=True)
    raise SystemExit(1)


def parse(argv: Sequence[str], name: eras.Name, rejected: Sequence[str] = ()) -> dict[str, str]:
    """Values by every spelling of each flag that was given; the last occurrence wins, but types add up."""
    era, flags = eras.ERAS[name], known_flags(name)
    given: dict[str, str] = {}
    rest = iter(argv)
    for token in rest:
        spelling = token.replace("_", "-") if token.startswith("--") else token
        flag = flags.get(spelling)
        if flag is None or spelling in rejected:
            refuse(era.unknown_flag.format(token))
        values = [value for _ in range(flag.values) if (value := next(rest, None)) is not None]
        if len(values) < flag.values:
            refuse(f'error while handling argument "{token}": expected value for argument', flag)
        if REMOVED in flag.text:
            hint = " ".join(flag.text.split(REMOVED)[1].split("(env:")[0].split())
            refuse(f'error while handling argument "{token}": {REMOVED}{hint}', flag)
        value = " ".join(values) if values else token
        if TYPES in flag.names and era.adds_types and TYPES in given:
            value = f"{given[TYPES]} {value}"
        given.update(dict.fromkeys(flag.names, value))
    return given
