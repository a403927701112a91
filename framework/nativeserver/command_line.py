"""From arguments and environment to what a server is started with (12 §19-20). Called by process.

Files that flags name are read here; nothing else is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from framework.nativeserver.environment import read_environment
from framework.nativeserver.flags.flag import Flag
from framework.nativeserver.flags.meant import ask, meant_flag
from framework.nativeserver.flags.table import ALL, BY_SPELLING
from framework.nativeserver.flags.values import boolean, shown
from framework.nativeserver.help_text import flag_help
from framework.nativeserver.options import ServerOptions
from framework.nativeserver.readings import Reading, check_text, switched
from framework.nativeserver.settings import Settings, action_of, settle
from framework.nativeserver.usage_error import UsageError

MISSING_VALUE = "expected value for argument"
MODEL_SUFFIX = ".gguf"
ALL_FLAGS = "--help lists the flags"


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> ServerOptions:
    """The options of a server. Raises UsageError."""
    return read(argv, environ).options


def read(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Everything that arguments and environment say. Raises UsageError.

    A flag that asks for something other than serving ends the reading: what follows is not looked at.
    """
    line = tuple(_readings(argv))
    if (action := action_of(line)) is not None:
        return action
    return settle((*read_environment(environ), *line), environ)


def _readings(argv: Sequence[str]) -> Iterator[Reading]:
    tokens = iter(argv)
    for token in tokens:
        flag, spelling, value = _find(token)
        if flag.role in ("refused", "removed"):
            raise _fault(flag, spelling, flag.help)
        if flag.value is None:
            reading = _switch(flag, spelling, value)
        else:
            if value is None and (value := next(tokens, None)) is None:
                raise _fault(flag, spelling, MISSING_VALUE)
            reading = _valued(flag, spelling, value)
        if reading is not None:
            yield reading
            if flag.role == "action":
                return


def _find(token: str) -> tuple[Flag, str, str | None]:
    """The flag of a token, as it was spelt, and the value behind `=`. Raises UsageError."""
    for spelling, mark, value in ((token, "", ""), token.partition("=")):
        known = f"--{spelling[2:].replace('_', '-')}" if spelling.startswith("--") else spelling
        if (flag := BY_SPELLING.get(known)) is not None:
            return flag, known, value if mark else None
    text = shown(token)[1:-1] if token else shown(token)
    raise UsageError(f"error: invalid argument: {text}{_hint(token)}")


def _hint(token: str) -> str:
    """What to write instead of a token that is no flag and the value of none."""
    if meant := meant_flag(token.partition("=")[0], ALL):
        return ask(meant)
    if token.startswith("-"):
        return f"; {ALL_FLAGS}"
    if token.endswith(MODEL_SUFFIX) or "/" in token:
        return ask(f"-m {shown(token)[1:-1]}")
    return f": no flag that takes a value stands before it; {ALL_FLAGS}"


def _switch(flag: Flag, spelling: str, value: str | None) -> Reading | None:
    try:
        is_on = value is None or boolean(value)
    except ValueError as error:
        raise _fault(flag, spelling, str(error)) from error
    return switched(flag, is_on != (spelling in flag.negations), source=spelling)


def _valued(flag: Flag, spelling: str, text: str) -> Reading:
    assert flag.value is not None
    try:
        check_text(text)
        return Reading(flag, flag.value.read(text), spelling)
    except ValueError as error:
        raise _fault(flag, spelling, str(error)) from error


def _fault(flag: Flag, spelling: str, text: str) -> UsageError:
    """In the frame of 15 §1, which the manager knows."""
    usage = "" if flag.role == "refused" else f"\nusage:\n{flag_help(flag)}\n\n"
    return UsageError(
        f'error while handling argument "{spelling}": {text}\n{usage}\nto show complete usage, run with -h'
    )
