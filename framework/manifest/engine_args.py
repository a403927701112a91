"""Extra flags for an engine's command line: one spelling, and which are not the user's (06 §5.1, §5.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

JOINED = re.compile(r"(--?[A-Za-z][A-Za-z0-9_-]*)=(.*)", re.DOTALL)
LONG_FLAG = re.compile(r"--[A-Za-z][A-Za-z0-9_-]*")

_SOURCE = "the model is chosen by source"
_KEY = "every process gets a random key; clients present those of [access]"
_LOG = "output is kept, see paddock logs"
_ABOUT = "it would end the process at once, see paddock engines"

RESERVED = {
    "-m": _SOURCE,
    "--model": _SOURCE,
    "-mu": _SOURCE,
    "--model-url": _SOURCE,
    "-hf": _SOURCE,
    "-hfr": _SOURCE,
    "--hf-repo": _SOURCE,
    "-hff": _SOURCE,
    "--hf-file": _SOURCE,
    "-hft": "set HF_TOKEN in environment",
    "--hf-token": "set HF_TOKEN in environment",
    "-a": "use aliases",
    "--alias": "use aliases",
    "--host": "processes listen on loopback, clients reach them through server.listen",
    "--port": "processes get free ports, clients reach them through server.listen",
    "--api-key": _KEY,
    "--api-key-file": _KEY,
    "--slot-save-path": "use slot_state",
    "--log-disable": _LOG,
    "--log-file": _LOG,
    "-h": _ABOUT,
    "--help": _ABOUT,
    "--version": _ABOUT,
}
"""Reserved flag to what to use instead."""


def split_token(token: str) -> tuple[str, ...]:
    """`--flag=value` as two tokens, `_` in a long flag as `-`; everything else as it is."""
    joined = JOINED.fullmatch(token)
    if joined:
        return (_dashed(joined.group(1)), joined.group(2))
    return (_dashed(token),) if LONG_FLAG.fullmatch(token) else (token,)


def _dashed(flag: str) -> str:
    return flag.replace("_", "-") if flag.startswith("--") else flag


def normalised(args: Iterable[str]) -> tuple[str, ...]:
    """The tokens in the one spelling that every reader expects."""
    return tuple(part for token in args for part in split_token(token))


def reserved_flags(args: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """Index, flag and what to use instead, for each token that is a reserved flag."""
    for index, token in enumerate(args):
        flag = split_token(token)[0]
        if flag in RESERVED:
            yield index, flag, RESERVED[flag]


def last_value(args: Sequence[str], *flags: str) -> str | None:
    """The value of the last of these flags in normalised tokens, None when there is none (15 §1)."""
    found = [args[index + 1] for index, token in enumerate(args[:-1]) if token in flags]
    return found[-1] if found else None
