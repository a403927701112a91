"""What of a page has changed since it was last sent. Pure; `live` renders and sends the answer.

A page is a tree of fragments, each an element with an id. Values are compared, not HTML: a part at rest
costs one comparison, and nothing is rendered that is not sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Feed:
    """A list that grows at one end. `items` are the newest ones with their numbers, which only grow;
    `element` is what they stand in."""

    target: str
    where: Literal["beforeend", "afterbegin"]
    template: str
    variable: str
    items: tuple[tuple[int, object], ...]
    element: Literal["ol", "tbody"] = "ol"

    @property
    def newest(self) -> int:
        """Number of the newest item, 0 when there is none."""
        return max((number for number, _ in self.items), default=0)


@dataclass(frozen=True)
class Fragment:
    """One element of a page. `outline` is what it is compared by: without `parts` and `feed`, which have
    their own turn. None means its whole `value`."""

    id: str
    template: str
    variable: str
    value: object
    outline: object = None
    parts: tuple[Fragment, ...] = ()
    feed: Feed | None = None

    @property
    def compared(self) -> object:
        """What decides whether the element as a whole is sent again."""
        return self.value if self.outline is None else self.outline


@dataclass(frozen=True)
class Whole:
    """Send a fragment with everything in it."""

    fragment: Fragment


@dataclass(frozen=True)
class Grown:
    """Send new items of a feed, in the order of the feed."""

    feed: Feed
    items: tuple[object, ...]


Update = Whole | Grown


class Sent:
    """What one page has been sent so far."""

    def __init__(self) -> None:
        self._outlines: dict[str, object] = {}
        self._numbers: dict[str, int] = {}
        self._newest: tuple[Fragment, ...] = ()

    def remember(self, fragments: tuple[Fragment, ...]) -> None:
        """The page shows exactly this, for instance because it was rendered from it."""
        self._newest = fragments
        self._outlines.clear()
        self._numbers.clear()
        for fragment in fragments:
            self._note(fragment)

    def changes(self, fragments: tuple[Fragment, ...]) -> list[Update]:
        """What must be sent for the page to show `fragments`; counts as sent from here on."""
        if fragments is self._newest:
            return []
        self._newest = fragments
        updates = [update for fragment in fragments for update in self._changes_of(fragment)]
        if any(isinstance(update, Whole) for update in updates):
            # Forgets the elements that are gone: a list of models that comes and goes must not grow this.
            self.remember(fragments)
        return updates

    def _changes_of(self, fragment: Fragment) -> Iterator[Update]:
        if self._outlines.get(fragment.id, self) != fragment.compared:
            yield Whole(fragment)
            return
        feed = fragment.feed
        if feed is not None:
            after = self._numbers.get(feed.target, 0)
            fresh = tuple(item for number, item in feed.items if number > after)
            if fresh and len(fresh) == len(feed.items):
                # The window has moved on entirely; what lies between is unknown.
                yield Whole(fragment)
                return
            if fresh:
                self._numbers[feed.target] = feed.newest
                yield Grown(feed, fresh)
        for part in fragment.parts:
            yield from self._changes_of(part)

    def _note(self, fragment: Fragment) -> None:
        self._outlines[fragment.id] = fragment.compared
        if fragment.feed is not None:
            self._numbers[fragment.feed.target] = fragment.feed.newest
        for part in fragment.parts:
            self._note(part)
