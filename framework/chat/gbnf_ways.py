"""In how many ways does a grammar read one text? The engine follows all of them, for every token.

Called by chat.gbnf_check, which has refused left recursion. The engine keeps a set of stacks: what may come
next, and what then follows. It tries a token along every path from stack to stack, without noticing that
paths meet. A grammar of 30 bytes doubles their number with every character, so the stacks are followed here
first, over whole classes of characters: from the start of the grammar, through every set of stacks that some
text leads to. What lies under a place that all stacks share is cut off, and a set that is part of one that
was seen is not followed again; so grammars that are read in one way take time in the order of their size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from operator import ge

from framework.chat.gbnf import GrammarError
from framework.chat.gbnf_cost import N_PIECES, TokenCost
from framework.chat.gbnf_stacks import NOTHING, Stacks
from framework.chat.schema.charset import Ranges

MAX_WAYS = 8192
"""Paths at one place of a text; objects of 2000 optional properties have about as many."""
MAX_SECONDS = 0.5
"""For one token, beside which all other requests wait."""
WINDOW = 10
"""Characters of one token that the paths are counted over."""
MAX_MOVES = 2_000_000
"""Steps of this search; seconds, beside the event loop."""
Live = dict[int, int]
"""Stacks, and how many paths lead to each."""


Shapes = Mapping[int, tuple[int, ...]]
"""Shapes of stacks, each with the number of paths to it and its counts."""


@dataclass(frozen=True)
class _Followed:
    """A set that was followed."""

    shapes: Shapes
    n_chars: int
    """Of the window."""

    def covers(self, shapes: Shapes, n_chars: int) -> bool:
        """Whether a set brings nothing that this one did not."""
        if self.n_chars > n_chars or len(self.shapes) < len(shapes):
            return False
        own = self.shapes
        return all(shape in own and all(map(ge, own[shape], counts)) for shape, counts in shapes.items())


def refuse_many_ways(stacks: Stacks, root: int, names: Sequence[str]) -> None:
    """Raises GrammarError, naming a rule, when some text can be read in too many ways."""
    _Search(stacks, names).run(root)


class _Search:
    """All sets of stacks that a text leads to, those with the most stacks first."""

    def __init__(self, stacks: Stacks, names: Sequence[str]) -> None:
        self._stacks = stacks
        self._names = names
        self._waiting: list[tuple[int, int, int, Live]] = []
        self._order = count()
        self._followed: dict[frozenset[int], list[_Followed]] = {}
        self._largest: dict[int, _Followed] = {}
        """The largest set with a shape."""
        self._moves = 0
        self._cost = TokenCost(stacks, MAX_SECONDS, self._spend)

    def run(self, root: int) -> None:
        """Raises GrammarError."""
        start = self._stacks.start(root)
        found = self._stacks.entered(start, MAX_WAYS)
        if found is None:
            raise self._trouble(start)
        self._push(dict.fromkeys(found, 1), 0)
        while self._waiting:
            _, n_chars, _, live = heappop(self._waiting)
            if self._is_new(live, n_chars):
                for same in self._classes(live):
                    self._push(self._after(live, same), n_chars + 1)

    def _after(self, live: Live, same: Sequence[int]) -> Live:
        """The paths after one character that all of these stacks take."""
        ways: Live = {}
        advanced = self._stacks.entered if list(live.values()) == [1] else self._stacks.advanced
        for stack in same:
            n_ways = live[stack]
            found = advanced(self._stacks.after(stack), MAX_WAYS)
            if found is None:
                raise self._trouble(stack)
            for following in found:
                ways[following] = ways.get(following, 0) + n_ways
        self._spend(len(ways) + len(same))
        if sum(ways.values()) > MAX_WAYS:
            raise self._trouble(same[0])
        return ways

    def _push(self, live: Live, n_chars: int) -> None:
        """Notes sets to be followed: stacks that no character has in common don't meet again."""
        live.pop(NOTHING, None)
        self._refuse_slow(live)
        for part in self._apart(live):
            counted = part if n_chars < WINDOW else dict.fromkeys(part, 1)
            self._spend(self._stacks.height(counted) // 8)
            # Single ones first, since they lead to the large sets, of which the largest cover others.
            order = -len(part) if len(part) > 1 else -MAX_WAYS - 1
            since = n_chars if max(counted.values()) > 1 else 0
            heappush(self._waiting, (order, since, next(self._order), self._stacks.cut(counted)))

    def _refuse_slow(self, live: Live) -> None:
        """The engine holds a token against all of them, also where no character has them in common."""
        if self._cost.of(live) > MAX_SECONDS:
            name = self._names[self._stacks.rule(next(iter(live)))]
            n_ranges = sum(len(self._stacks.terminal(stack)) for stack in live)
            raise GrammarError(
                f"one token would take longer than the {MAX_SECONDS} seconds that are allowed, in a"
                f" vocabulary of {N_PIECES}: with the rule {name} there are {len(live)} ways to go on at one"
                f" place, with {n_ranges} characters or ranges of them; write fewer alternatives and smaller"
                " classes, and [a-z] rather than an alternative for each character"
            )

    def _is_new(self, live: Live, n_chars: int) -> bool:
        shapes = {
            self._stacks.shape(stack): (n_ways, *self._stacks.counts(stack)) for stack, n_ways in live.items()
        }
        if len(shapes) < len(live):
            shapes = {-stack: (n_ways,) for stack, n_ways in live.items()}
        followed = self._followed.setdefault(frozenset(shapes), [])
        if any(one.covers(shapes, n_chars) for one in followed):
            return False
        larger = self._largest.get(next(iter(shapes)))
        if larger is not None and larger.covers(shapes, n_chars):
            return False
        here = _Followed(shapes, n_chars)
        followed.append(here)
        for shape in shapes:
            known = self._largest.get(shape)
            if known is None or len(known.shapes) < len(shapes):
                self._largest[shape] = here
        return True

    def _apart(self, live: Live) -> Iterator[Live]:
        """The parts of a set whose terminals overlap, directly or by way of others."""
        by_terminal = self._by_terminal(live)
        if len(by_terminal) < 2:
            yield from [live] if live else ()
            return
        edges = sorted((low, high, terminal) for terminal in by_terminal for low, high in terminal)
        self._spend(len(edges))
        owner = {terminal: terminal for terminal in by_terminal}

        def found(terminal: Ranges) -> Ranges:
            while owner[terminal] is not terminal:
                owner[terminal] = terminal = owner[owner[terminal]]
            return terminal

        reach, last = -1, edges[0][2] if edges else ()
        for low, high, terminal in edges:
            if low <= reach:
                owner[found(terminal)] = found(last)
            if high > reach:
                reach, last = high, terminal
        parts: dict[Ranges, Live] = {}
        for terminal, stacks in by_terminal.items():
            parts.setdefault(found(terminal), {}).update((stack, live[stack]) for stack in stacks)
        yield from parts.values()

    def _by_terminal(self, live: Live) -> dict[Ranges, list[int]]:
        by_terminal: dict[Ranges, list[int]] = {}
        for stack in live:
            by_terminal.setdefault(self._stacks.terminal(stack), []).append(stack)
        return by_terminal

    def _classes(self, live: Live) -> Iterator[Sequence[int]]:
        """The stacks that some character fits, for each such group; those within another are left out."""
        by_terminal = self._by_terminal(live)
        if len(by_terminal) == 1:
            yield next(iter(by_terminal.values()))
            return
        groups = _overlaps(list(by_terminal))
        self._spend(sum(map(len, groups)))
        for group in groups:
            yield [stack for terminal in group for stack in by_terminal[terminal]]

    def _spend(self, moves: int) -> None:
        self._moves += moves
        if self._moves > MAX_MOVES:
            raise GrammarError(
                "the grammar is too large or too ambiguous; write rules that read a text in one way"
            )

    def _trouble(self, stack: int) -> GrammarError:
        name = self._names[self._stacks.rule(stack)]
        return GrammarError(
            f"there are more than {MAX_WAYS} ways to read one text with the rule {name};"
            " write rules that read a text in one way"
        )


def _overlaps(terminals: list[Ranges]) -> list[frozenset[Ranges]]:
    """The sets of terminals that share a character, without those that are part of another."""
    edges: list[tuple[int, bool, Ranges]] = []
    for terminal in terminals:
        for low, high in terminal:
            edges += ((low, True, terminal), (high + 1, False, terminal))
    edges.sort(key=lambda edge: edge[0])
    active: Counter[Ranges] = Counter()
    groups: dict[frozenset[Ranges], None] = {}
    for at, (place, begins, terminal) in enumerate(edges):
        active[terminal] += 1 if begins else -1
        if not active[terminal]:
            del active[terminal]
        if active and (at + 1 == len(edges) or edges[at + 1][0] > place):
            groups[frozenset(active)] = None
    maximal: list[frozenset[Ranges]] = []
    for group in sorted(groups, key=len, reverse=True):
        if not any(group < larger for larger in maximal if len(larger) > 1):
            maximal.append(group)
    return maximal
