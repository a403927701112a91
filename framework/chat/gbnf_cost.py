"""How long the engine's grammar sampler takes for one token: an estimate, made before it gets a grammar.

Called by chat.gbnf_ways for each set of stacks that a text leads to. The sampler holds the pieces of the
vocabulary against one stack after the other, compares each with the ranges of its class, works out what
follows the stack, and goes on there with the pieces that fit, character by character. How many pieces still
fit is estimated by how rare a character is; the times were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from framework.chat.gbnf_stacks import NOTHING, Stacks
from framework.chat.schema import charset
from framework.chat.schema.charset import Ranges

N_PIECES = 150_000
"""Of a large vocabulary."""
_FULL = 17
"""Bits that it takes to tell so many pieces apart."""
_PIECES = [N_PIECES * 2.0 ** (left - _FULL) for left in range(_FULL + 1)]
_FEW = 16
"""Stacks that are too few to take long, however they go on: the ways to go on are limited, too."""
_NS_PIECE = 6.0
"""To hand a piece to a stack."""
_NS_RANGE = 0.8
"""To compare it with a range."""
_NS_STACK = 450.0
"""To work out a stack that follows."""
_NS_PAIR = 3.0
"""To compare it with another one that does."""
_MOST_FOLLOWING = 8192


class TokenCost:
    """Of the stacks of one grammar. `spend` is told of each step of the estimate, and may raise."""

    def __init__(self, stacks: Stacks, most: float, spend: Callable[[int], None]) -> None:
        self._stacks = stacks
        self._most = most * 1e9
        self._spend = spend
        self._known: dict[tuple[int, int], float] = {}
        self._follows: dict[int, tuple[float, tuple[int, ...]]] = {}

    def of(self, live: Iterable[int]) -> float:
        """Seconds for a token where these stacks are alive; at least `most` where it may be more."""
        own = [stack for stack in live if stack != NOTHING]
        # Cheap to know, and enough to refuse sets of which the rest would take long to look at.
        total = sum(self._compared(stack, _FULL) for stack in own)
        if len(own) >= _FEW:
            for stack in own:
                if total > self._most:
                    break
                total += self._continued(stack, _FULL)
        return total / 1e9

    def _compared(self, stack: int, left: int) -> float:
        """Nanoseconds to hold the pieces that are left against the stack."""
        return _PIECES[left] * (_NS_PIECE + _NS_RANGE * len(self._stacks.terminal(stack)))

    def _continued(self, stack: int, left: int) -> float:
        """Nanoseconds to find out what follows the stack, and to hold the pieces that fit it against that."""
        key = stack, left
        if (known := self._known.get(key)) is not None:
            return known
        total, following = self._following(stack)
        self._spend(1 + len(following) // 8)
        terminal: Ranges = ()
        for part in following:
            if total > self._most:
                break
            rest = left - _rarity(self._stacks.terminal(stack))
            # Pieces that a stack takes are not held against the next one of the same characters.
            if terminal == (terminal := self._stacks.terminal(part)):
                rest -= 2
            if rest >= 0:
                total += self._compared(part, rest) + self._continued(part, rest)
        self._known[key] = total
        return total

    def _following(self, stack: int) -> tuple[float, tuple[int, ...]]:
        """Nanoseconds to work out the stacks that follow, and these."""
        if (known := self._follows.get(stack)) is None:
            found = self._stacks.advanced(self._stacks.after(stack), _MOST_FOLLOWING)
            if found is None:
                known = float("inf"), ()
            else:
                n = len(found)
                known = n * (_NS_STACK + n * _NS_PAIR), tuple(part for part in found if part != NOTHING)
            self._follows[stack] = known
        return known


def _rarity(terminal: Ranges) -> int:
    """Bits that a character of these tells of a piece."""
    if not terminal or terminal[-1][1] > charset.LAST:
        # A token is all of a piece.
        return _FULL + 1
    size = sum(high - low + 1 for low, high in terminal)
    for least, rarity in ((16, 1), (6, 2), (2, 3)):
        if size >= least:
            return rarity
    return 5 if terminal[0][0] < 0x80 else 6
