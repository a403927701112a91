"""Settings from environment variables (12 §20, 15 §2). Called by command_line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from framework.nativeserver.flags.flag import Flag
from framework.nativeserver.flags.table import ALL
from framework.nativeserver.flags.values import boolean
from framework.nativeserver.readings import Reading, check_text, switched
from framework.nativeserver.usage_error import UsageError


def read_environment(environ: Mapping[str, str]) -> tuple[Reading, ...]:
    """What the variables say, in the order of the table. Raises UsageError naming the variable."""
    return tuple(reading for flag in ALL if flag.variable for reading in _of_flag(flag, environ))


def _of_flag(flag: Flag, environ: Mapping[str, str]) -> Iterator[Reading]:
    name, negative = flag.variable, flag.negative_variable
    if negative in environ:  # whatever its value
        yield Reading(flag, False, negative, from_environment=True)
    elif (text := environ.get(name)) is not None:
        if flag.role in ("refused", "removed"):
            raise _fault(name, flag.help)
        try:
            check_text(text)
            reading = _reading(flag, name, text)
        except ValueError as error:
            raise _fault(name, str(error)) from error
        if reading is not None:
            yield reading


def _reading(flag: Flag, name: str, text: str) -> Reading | None:
    if flag.value is None:
        return switched(flag, boolean(text), source=name, from_environment=True)
    return Reading(flag, flag.value.read(text), name, from_environment=True)


def _fault(name: str, text: str) -> UsageError:
    return UsageError(f'error while handling environment variable "{name}": {text}')
