"""One live page, as `live_sources` makes it and `live` and `shared_pages` read it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field

from framework.dashboard.updates import Fragment
from framework.runtime.logs import LogBuffer
from framework.values.instance import ModelView


def never_due() -> None:
    """A page of which everything that moves is told."""
    return


def no_log() -> None:
    """A page without a log."""
    return


async def nothing_to_read() -> None:
    """A page of what is in memory."""


@dataclass(frozen=True)
class LiveSource:
    """One page as it is at the moment of each call. Sources of equal `key` show the same to everybody."""

    fragments: Callable[[], tuple[Fragment, ...]]
    models: Callable[[], Sequence[ModelView]]
    log: Callable[[], LogBuffer | None]
    tag: Callable[[], str]
    key: Hashable = field(default_factory=object)
    refresh: Callable[[], Awaitable[None]] = nothing_to_read
    """Reads what cannot be read at once, before `fragments` is called."""
    due_s: Callable[[], float | None] = never_due
    """Seconds after which something may have moved that nobody tells of; None: never."""
    for_operators: bool = False
    """Whether it ends for who may only look."""

    def is_current(self, have: str) -> bool:
        """Whether a page that was rendered at `have` shows what is so now."""
        return have == self.tag()
