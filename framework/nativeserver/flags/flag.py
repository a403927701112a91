"""What the tables are made of: a flag, its spellings, its value, and where the value goes (12 §19).

Parser, environment reader, help text and reference page read nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from framework.nativeserver.flags.values import Value

Role = Literal["honoured", "ignored", "refused", "removed", "action"]
"""`ignored`: one warning each. `refused`, `removed`: end the start. `action`: done in place of serving."""

ENV_PREFIX = "LLAMA_ARG_"
NEGATIVE_ENV_PREFIX = "LLAMA_ARG_NO_"


@dataclass(frozen=True)
class Flag:
    """One setting with all its spellings."""

    names: tuple[str, ...]
    help: str
    target: str = ""
    """`group.attribute`: engine, speculation, loop_guard, server, cors, chat, request, log; settings sees to
    what is of `line`."""
    value: Value | None = None
    """None: a switch."""
    negations: tuple[str, ...] = ()
    """Spellings that switch it off."""
    default: str = ""
    """As shown to people."""
    env: str = ""
    """Name of the variable behind its prefix, or a whole name that begins with `LLAMA_`."""
    collects: bool = False
    """Occurrences add up instead of the last one counting; the values are tuples."""
    adds_to_environment: bool = False
    """Also to what the variable says, which otherwise gives way to the command line."""
    role: Role = "honoured"
    constant: Any = True
    """What a switch sets."""

    @property
    def variable(self) -> str:
        """Whole name of the environment variable; empty where there is none."""
        if not self.env or self.env.startswith("LLAMA_"):
            return self.env
        return ENV_PREFIX + self.env

    @property
    def negative_variable(self) -> str:
        """The variable that switches off by being there."""
        is_negatable = self.negations and self.variable.startswith(ENV_PREFIX)
        return NEGATIVE_ENV_PREFIX + self.env if is_negatable else ""

    @property
    def spellings(self) -> tuple[str, ...]:
        """All of them, negations last."""
        return (*self.names, *self.negations)


def switch(names: str, target: str, text: str, **options: Any) -> Flag:
    """A switch; `names` are separated by blanks, and so is `off`, the spellings that switch off."""
    off = tuple(str(options.pop("off", "")).split())
    return Flag(tuple(names.split()), text, target, None, off, **options)


def valued(names: str, target: str, value: Value, text: str, **options: Any) -> Flag:
    """A flag with a value."""
    return Flag(tuple(names.split()), text, target, value, **options)
