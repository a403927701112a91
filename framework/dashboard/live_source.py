"""One live page, as `live_sources` makes it and `live` and `shared_pages` read it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from framework.dashboard.updates import Fragment
from framework.runtime.logs import LogBuffer
from framework.values.instance import ModelView


@dataclass(frozen=True)
class LiveSource:
    """One page as it is at the moment of each call. Sources of equal `key` show the same to everybody."""

    fragments: Callable[[], tuple[Fragment, ...]]
    models: Callable[[], Sequence[ModelView]]
    log: Callable[[], LogBuffer | None]
    tag: Callable[[], str]
    key: Hashable = field(default_factory=object)

    def is_current(self, have: str) -> bool:
        """Whether a page that was rendered at `have` shows what is so now."""
        return have == self.tag()
