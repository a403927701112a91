"""Flags and variables of one command line, read as the engine reads them (03 §2.1). Pure.

Called by line_settings and line_drafting, which know what each of them means for memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from framework.engines.args import FALSE_WORDS, TRUE_WORDS, values_of

VARIABLE = "LLAMA_ARG_"
NEGATED_VARIABLE = "LLAMA_ARG_NO_"
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,12}")


@dataclass(frozen=True)
class LineReader:
    """Flags over variables, the last occurrence over the others."""

    argv: Sequence[str]
    env: Mapping[str, str]

    def has(self, *flags: str) -> bool:
        """Whether one of the flags is on the line."""
        return any(flag in self.argv for flag in flags)

    def variable(self, name: str) -> str:
        """Text of a variable, by its name without prefix; empty where it is not set."""
        return self.env.get(VARIABLE + name, "")

    def value(self, flags: Sequence[str], variable: str) -> str | None:
        """The last text given to the flags, else that of the variable."""
        found = [value for value in values_of(self.argv, flags) if value]
        return found[-1] if found else self.variable(variable) or None

    def number(self, flags: Sequence[str], variable: str) -> int | None:
        """The last whole number given to the flags, else that of the variable."""
        found = [value for value in values_of(self.argv, flags) if WHOLE_NUMBER.fullmatch(value)]
        text = found[-1] if found else self.variable(variable)
        return int(text) if WHOLE_NUMBER.fullmatch(text) else None

    def switch(self, on: Sequence[str], off: Sequence[str], variable: str, *, default: bool = True) -> bool:
        """State after all flags that turn something on or off, and after its variables before them."""
        state = default
        if self.variable(variable) in TRUE_WORDS:
            state = True
        elif self.variable(variable) in FALSE_WORDS or NEGATED_VARIABLE + variable in self.env:
            state = False
        for token in self.argv:
            state = token in on or (state and token not in off)
        return state
