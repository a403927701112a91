"""What open pages show, worked out and printed once for all streams that show the same.

Fifty readers of the overview cost little more than one: page values are made when something has changed, not
for each reader, and what of them is sent is printed once for each role. Belongs to one event loop; holds
nothing that cannot be made anew.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from markupsafe import Markup

from framework.dashboard.live_source import LiveSource
from framework.dashboard.pages.shell import Role, Viewer
from framework.dashboard.states import look_of
from framework.dashboard.templating import Templates
from framework.dashboard.updates import Fragment, Update, Whole

# Stands in shared text where a reader's own token belongs. Nobody outside of this process knows it.
TOKEN_PLACE = f"token-{secrets.token_hex(16)}"


@dataclass(frozen=True)
class Moment:
    """A page as it was at one moment."""

    stamp: Hashable
    made_s: float
    fragments: tuple[Fragment, ...]
    states: Mapping[str, str]
    """The state of each model in words."""
    is_moving: bool
    """Whether something on it moves that nobody reports."""
    printed: dict[Hashable, str] = field(default_factory=dict)


@dataclass
class _Shown:
    readers: int = 0
    moment: Moment | None = None


class SharedPages:
    """One moment for each page that somebody looks at."""

    def __init__(self, templates: Templates, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._templates = templates
        self._clock = clock
        self._shown: dict[Hashable, _Shown] = {}

    @contextmanager
    def reader(self, source: LiveSource) -> Iterator[None]:
        """Somebody looks at a page; what is shared of it is kept until the last one leaves."""
        shown = self._shown.setdefault(source.key, _Shown())
        shown.readers += 1
        try:
            yield
        finally:
            shown.readers -= 1
            if not shown.readers:
                self._shown.pop(source.key, None)

    def look(self, source: LiveSource, *, holds_s: float) -> Moment:
        """The page as it is now. REQUIRES: called by a reader of it.

        Progress and countdowns move without a sign of it: what was worked out before is good for `holds_s`.
        """
        shown, stamp, now = self._shown[source.key], source.tag(), self._clock()
        known = shown.moment
        if known is None or known.stamp != stamp or now - known.made_s >= holds_s:
            known = shown.moment = _moment(source, stamp, now)
        return known

    def html(self, moment: Moment, update: Update, viewer: Viewer) -> str:
        """An update of a page as this viewer sees it."""
        key = (_name(update), viewer.may_operate)
        if (text := moment.printed.get(key)) is None:
            text = moment.printed[key] = self._print(update, Role(TOKEN_PLACE, viewer.may_operate))
        return text.replace(TOKEN_PLACE, Markup.escape(viewer.csrf))

    def _print(self, update: Update, role: Role) -> str:
        if isinstance(update, Whole):
            return self._templates.fragment(update.fragment, role)
        return self._templates.feed(update.feed, update.items, role)


def _moment(source: LiveSource, stamp: Hashable, now_s: float) -> Moment:
    models = source.models()
    instances = [instance for view in models for instance in view.instances]
    return Moment(
        stamp,
        now_s,
        source.fragments(),
        {view.request.id: look_of(view.state).label for view in models},
        is_moving=any(view.queue.position is not None for view in models)
        or any(i.progress is not None or i.retry_in_s is not None for i in instances),
    )


def _name(update: Update) -> Hashable:
    """What tells the updates of one moment apart: a feed grows by its newest items."""
    if isinstance(update, Whole):
        return update.fragment.id
    return update.feed.target, len(update.items)
