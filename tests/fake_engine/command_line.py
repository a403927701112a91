"""The command line of llama-server: help of two eras, and a parser that refuses what the real one does.

Flags, their spellings and whether they take a value are read from the help text itself (15 §1-2).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

HELP_FILE = Path(__file__).parent.parent / "data" / "llama-server-help-b10068.txt"
HELP_COLUMN = 40
REMOVED = "the argument has been removed"
LEGACY_SPECULATION = """
--spec-type [none|ngram-cache|ngram-simple|ngram-map-k|ngram-map-k4v|ngram-mod]
                                        type of speculative decoding to use without a draft model
--spec-ngram-size-n N                   ngram size N for ngram-based speculative decoding (default: 12)
--draft, --draft-n, --draft-max N       number of tokens to draft for speculative decoding (default: 16)
                                        (env: LLAMA_ARG_DRAFT_MAX)
--draft-min, --draft-n-min N            minimum number of draft tokens to use (default: 0)
                                        (env: LLAMA_ARG_DRAFT_MIN)
-md,   --model-draft FNAME              draft model for speculative decoding (default: unused)
"""


@dataclass(frozen=True)
class Flag:
    """One entry of the help text: every spelling, whether a value follows, and its text."""

    names: tuple[str, ...]
    takes_value: bool
    text: str


def help_text(era: str) -> str:
    """The real help of b10068, or (`old`) one as builds before the renames printed it."""
    text = HELP_FILE.read_text(encoding="utf-8")
    if era != "old":
        return text
    kept = [b for b in blocks(text) if REMOVED not in b and not re.match(r".*(--spec-|--model-draft)", b)]
    return "\n".join(kept) + LEGACY_SPECULATION


def blocks(text: str) -> list[str]:
    """The help text cut before every line that starts with a dash."""
    return re.split(r"\n(?=-)", text)


def known_flags(text: str) -> dict[str, Flag]:
    """Every spelling of every flag the help text lists."""
    found: dict[str, Flag] = {}
    for block in blocks(text):
        line = block.splitlines()[0]
        declared = re.match(r"(?:-{1,2}[A-Za-z][\w-]*,?\s*)+", line)
        if declared is not None:
            names = tuple(declared.group().replace(",", " ").split())
            takes_value = declared.end() < len(line) and declared.end() != HELP_COLUMN
            found.update(dict.fromkeys(names, Flag(names, takes_value, block)))
    return found


def refuse(message: str, flag: Flag | None = None) -> NoReturn:
    """End as the real parser ends: the message, the usage of the flag, exit status 1."""
    usage = "" if flag is None else f"\n\nusage:\n{flag.text}\n\n\nto show complete usage, run with -h"
    print(message + usage, file=sys.stderr, flush=True)
    raise SystemExit(1)


def parse(argv: Sequence[str], flags: Mapping[str, Flag], rejected: Sequence[str] = ()) -> dict[str, str]:
    """Values by every spelling of each flag that was given; the last occurrence wins."""
    given: dict[str, str] = {}
    rest = iter(argv)
    for token in rest:
        name = token.replace("_", "-") if token.startswith("--") else token
        flag = flags.get(name)
        if flag is None or name in rejected:
            refuse(f"error: invalid argument: {token}")
        value = next(rest, None) if flag.takes_value else token
        if value is None:
            refuse(f'error while handling argument "{token}": expected value for argument', flag)
        if REMOVED in flag.text:
            hint = " ".join(flag.text.split(REMOVED)[1].split("(env:")[0].split())
            refuse(f'error while handling argument "{token}": {REMOVED}{hint}', flag)
        given.update(dict.fromkeys(flag.names, value))
    return given
