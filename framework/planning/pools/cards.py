"""Memory of the fictive cards of a replay: where models go, who holds what, what was held at most. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from framework.planning.placement.selection import CARD_OVERHEAD_BYTES
from framework.values.plan import Placement
from framework.values.reason import Reason

NO_ROOM = Reason("does_not_fit", "It does not fit on the cards.")


@dataclass(frozen=True)
class Card:
    """A GPU of the fictive inventory; `bytes` are what may be planned of it."""

    name: str
    bytes: int


class Spot:
    """Where a model would go. A plan, as far as decisions need it."""

    __slots__ = ("needs_bytes",)

    def __init__(self, needs_bytes: Mapping[str, int]) -> None:
        self.needs_bytes = needs_bytes

    @property
    def placement(self) -> Placement:
        """The same, as decisions read it."""
        return Placement(tuple(self.needs_bytes), is_delegated=False, needs_bytes=self.needs_bytes)


class Cards:
    """What is free of each card, and who holds the rest."""

    def __init__(self, cards: Sequence[Card]) -> None:
        self._total = {card.name: card.bytes for card in cards}
        self._free = dict(self._total)
        self._held: dict[str, Mapping[str, int]] = {}
        self._least_free = dict(self._total)

    def place(self, need_bytes: int, gone: Iterable[str], kept: Mapping[str, int]) -> Spot | Reason:
        """The card with most room or, if none is enough, as few as possible of those with most. `gone` give
        back what they hold; `kept` is for others."""
        free = self._free
        if gone or kept:
            free = dict(free)
            for name in gone:
                for card, held in self._held[name].items():
                    free[card] += held
            for card, held in kept.items():
                free[card] -= held
        best = max(free, key=free.__getitem__)
        if free[best] >= need_bytes:
            return Spot({best: need_bytes})
        if sum(room for room in free.values() if room > 0) < need_bytes:
            return NO_ROOM
        return _spread(need_bytes, free)

    def hold(self, name: str, needs_bytes: Mapping[str, int], *, counts: bool) -> None:
        """Note what an instance holds. With `counts` it is really taken, and not only promised."""
        self._held[name] = needs_bytes
        for card, held in needs_bytes.items():
            self._free[card] -= held
            if counts:
                self._least_free[card] = min(self._least_free[card], self._free[card])

    def release(self, name: str) -> None:
        """It holds nothing any more."""
        for card, held in self._held.pop(name).items():
            self._free[card] += held

    def held(self, name: str) -> Mapping[str, int]:
        """What an instance holds of each card."""
        return self._held[name]

    def peak_bytes(self) -> dict[str, int]:
        """The most that was taken of each card at any time."""
        return {card: total - self._least_free[card] for card, total in self._total.items()}


def _spread(need_bytes: int, free: Mapping[str, int]) -> Spot | Reason:
    """Over as few cards as possible, each filled in proportion to its room."""
    taken: list[str] = []
    room = 0
    for card in sorted(free, key=lambda card: -free[card]):
        taken.append(card)
        room += free[card]
        need = need_bytes + (len(taken) - 1) * CARD_OVERHEAD_BYTES
        if room >= need:
            shares = {card: need * free[card] // room for card in taken}
            shares[taken[0]] += need - sum(shares.values())
            return Spot(shares)
    return NO_ROOM
