"""What the rendering of one chat template may use up. Templates come from strangers' files.

Used by chat.template_sandbox, which asks at every loop pass, call and growing value.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from jinja2.utils import Namespace

MAX_STEPS = 2_000_000
"""Loop passes, calls and filters of one rendering."""
MAX_SECONDS = 2.0
MAX_CHARS = 32 << 20
"""Text written in one rendering, also into variables; the largest text that a value may be."""
MAX_PARTS = 200_000
"""Values within a value, however often one of them occurs."""
MAX_NUMBER_BITS = 512


class TemplateError(ValueError):
    """A template that can't be read or rendered, or raised an error itself; the text is for the client."""


@dataclass
class Budget:
    """Counts down during one rendering."""

    steps: int = MAX_STEPS
    chars: int = MAX_CHARS
    ends_s: float = field(default_factory=lambda: time.monotonic() + MAX_SECONDS)

    def step(self, chars: int = 0) -> None:
        """One pass or call that writes so much fixed text."""
        self.steps -= 1
        if self.steps < 0:
            raise TemplateError(f"the chat template takes more than {MAX_STEPS} steps")
        if self.steps % 64 == 0 and time.monotonic() > self.ends_s:
            raise TemplateError(f"the chat template runs longer than {MAX_SECONDS:g} s")
        if chars:
            self.write(chars)

    def write(self, chars: int) -> None:
        """Text that goes out or into a variable."""
        self.chars -= chars
        if self.chars < 0:
            raise TemplateError(f"the chat template writes more than {MAX_CHARS} characters")


_current: ContextVar[Budget | None] = ContextVar("template_budget", default=None)


@contextmanager
def rendering() -> Iterator[Budget]:
    """The time of one rendering, in this thread or task."""
    budget = Budget()
    token = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(token)


def budget() -> Budget:
    """That of the rendering in progress."""
    if (current := _current.get()) is None:
        raise TemplateError("the chat template runs while it is read")
    return current


def allow_chars(count: int) -> None:
    """Refuses a text before it is made."""
    if count > MAX_CHARS:
        raise TemplateError(f"the chat template makes a text of more than {MAX_CHARS} characters")


def weighed(value: Any) -> Any:
    """The value itself, unless it is too large to be written, compared or copied."""
    if isinstance(value, str):
        allow_chars(len(value))
    elif isinstance(value, int):
        if value.bit_length() > MAX_NUMBER_BITS:
            raise TemplateError("the chat template makes a number that is too large")
    elif isinstance(value, list | tuple | set | Mapping):
        _weigh_parts(value)
    return value


def _weigh_parts(value: Any) -> None:
    left, chars, waiting = MAX_PARTS, MAX_CHARS, [value]
    while waiting:
        part = waiting.pop()
        left -= 1
        if isinstance(part, str):
            chars -= len(part)
        elif isinstance(part, Mapping):
            waiting.extend(part.keys())
            waiting.extend(part.values())
        elif isinstance(part, list | tuple | set):
            waiting.extend(part)
        elif isinstance(part, Namespace):
            raise TemplateError("the chat template puts a namespace into a list or dictionary")
        if len(waiting) > left or chars < 0:
            raise TemplateError("the chat template makes a value that is too large")
