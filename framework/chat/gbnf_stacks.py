"""The stacks of the engine's grammar sampler as numbers: a place in a rule, on what follows that rule.

Called by chat.gbnf_ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise

from framework.chat.gbnf import GrammarError
from framework.chat.gbnf_reader import Node
from framework.chat.schema import charset
from framework.chat.schema.charset import Ranges

NOTHING = 0
"""The stack of a text that is complete."""
MAX_STACKS = 500_000
_END: Ranges = ()


class Stacks:
    """Equal stacks have one number. As in the engine, a rule that ends leaves nothing behind."""

    def __init__(
        self, rules: list[list[list[Node]]], empty: Sequence[bool], counted: Mapping[int, tuple[int, int]]
    ) -> None:
        self._nodes: list[Node] = [_END]
        self._rule_of: list[int] = [0]
        self._ways: list[list[int]] = []
        """Where the alternatives of each rule begin."""
        self._counted = counted
        for number, ways in enumerate(rules):
            self._ways.append([])
            for way in ways:
                self._ways[-1].append(len(self._nodes))
                self._nodes += (*way, _END)
                self._rule_of += [number] * (len(way) + 1)
        self._can_end = self._find_ends(empty)
        self._places, self._below, self._heights = [0], [NOTHING], [0]
        self._shapes: list[int] = [NOTHING]
        self._counts: list[tuple[int, ...]] = [()]
        self._shape_numbers: dict[tuple[int, int, int], int] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._known: dict[int, Sequence[int]] = {NOTHING: (NOTHING,)}
        self._cuts: dict[int, int] = {NOTHING: NOTHING}
        self._entered: set[tuple[Node, int]] = set()
        self._firsts: dict[int, Ranges] = {NOTHING: ()}

    def start(self, rule: int) -> int:
        """A stack that reads a rule alone."""
        self._nodes += (rule, _END)
        self._rule_of += [rule] * 2
        self._can_end += [False, True]
        return self._made(len(self._nodes) - 2, NOTHING)

    def terminal(self, stack: int) -> Ranges:
        """What the stack takes next; it is one that `advanced` gave."""
        node = self._nodes[self._places[stack]]
        assert not isinstance(node, int)
        return node

    def rule(self, stack: int) -> int:
        """The rule that the top of the stack is part of."""
        return self._rule_of[self._places[stack]]

    def shape(self, stack: int) -> int:
        """A number that stacks share which differ only in how often something may still come."""
        return self._shapes[stack]

    def height(self, stacks: Iterable[int]) -> int:
        """Places in all of these stacks together: what it costs to look through them."""
        return sum(map(self._heights.__getitem__, stacks))

    def counts(self, stack: int) -> tuple[int, ...]:
        """How often it may. What a stack reads is read in as many ways by one with higher counts."""
        return self._counts[stack]

    def after(self, stack: int) -> int:
        """The stack behind its top."""
        place = self._places[stack] + 1
        below = self._below[stack]
        return below if self._nodes[place] == _END else self._made(place, below)

    def advanced(self, stack: int, most: int) -> Sequence[int] | None:
        """The stacks with a terminal on top, and NOTHING, that it stands for; None: more than `most`."""
        if (known := self._known.get(stack)) is not None:
            return known
        waiting = [stack]
        while waiting:
            top = waiting[-1]
            parts = self._parts(top)
            if unknown := [part for part in parts if part not in self._known]:
                waiting += unknown
                continue
            waiting.pop()
            if top in self._known:
                continue
            found: dict[int, None] = {}
            for part in parts:
                found.update(dict.fromkeys(self._known[part]))
            if len(found) > most:
                return None
            self._known[top] = tuple(found)
        return self._known[stack]

    def entered(self, stack: int, most: int) -> Sequence[int] | None:
        """As `advanced`, for a stack that one path leads to.

        Without what was found so before, all of it at once, and starts with characters of its own.
        """
        new, old, waiting = dict[int, None](), list[int](), [stack]
        while waiting:
            part = waiting.pop()
            # The same rule before the same rest is the same, wherever it stands.
            meaning = self._nodes[self._places[part]], self.after(part) if part else NOTHING
            if meaning in self._entered:
                old.append(part)
                continue
            self._entered.add(meaning)
            parts = self._parts(part)
            waiting += parts
            if not parts:
                new[part] = None
                if len(new) > most:
                    return None
        ranges = [*chain.from_iterable(map(self._first, {*new, *old}))]
        if len(old) > 1 or new:
            ranges.sort()
            if any(one[1] >= other[0] for one, other in pairwise(ranges)):
                for part in old:
                    if (found := self.advanced(part, most)) is None:
                        return None
                    new.update(dict.fromkeys(found))
        return tuple(new) if len(new) <= most else None

    def _first(self, stack: int) -> Ranges:
        """The characters that a stack can take next."""
        waiting = [stack]
        while waiting:
            top = waiting[-1]
            parts = self._parts(top)
            if unknown := [part for part in parts if part not in self._firsts]:
                waiting += unknown
                continue
            waiting.pop()
            own = () if parts else self.terminal(top)
            firsts = {self._firsts[part] for part in parts} | {own}
            self._firsts[top] = firsts.pop() if len(firsts) == 1 else charset.union(firsts)
        return self._firsts[stack]

    def cut(self, live: dict[int, int]) -> dict[int, int]:
        """The same without what lies under all of them, but for what may follow the next character.

        Without rounds, too, as long as that leaves as many stacks: nesting alone makes no more of them.
        """
        bases = iter({self._below[stack] for stack in live})
        shared = next(bases)
        for other in bases:
            shared = self._shared(shared, other)
        base = self._cut_base(shared)
        if base != shared:
            moved = {shared: base}
            live = {self._moved(stack, moved): n_ways for stack, n_ways in live.items()}
        if len(live) == 1:
            return live
        flat = {self._without_rounds(stack, base): n_ways for stack, n_ways in live.items()}
        return flat if len(flat) == len(live) else live

    def _without_rounds(self, stack: int, base: int) -> int:
        """The stack without what lies, above the base, between two equal places: rules within themselves."""
        trail: list[int] = []
        seen: dict[int, int] = {}
        part = stack
        while part not in (base, NOTHING):
            place = self._places[part]
            if place in seen:
                for dropped in trail[seen[place] + 1 :]:
                    del seen[dropped]
                del trail[seen[place] + 1 :]
            else:
                seen[place] = len(trail)
                trail.append(place)
            part = self._below[part]
        if len(trail) == self._heights[stack] - self._heights[part]:
            return stack
        for place in reversed(trail):
            part = self._made(place, part)
        return part

    def _shared(self, one: int, other: int) -> int:
        """The highest stack that lies under both, or is one of them."""
        while one not in (other, NOTHING):
            if self._heights[other] > self._heights[one]:
                other = self._below[other]
            else:
                one = self._below[one]
        return one

    def _moved(self, stack: int, moved: dict[int, int]) -> int:
        trail = []
        while stack not in moved:
            trail.append(stack)
            stack = self._below[stack]
        for part in reversed(trail):
            moved[part] = stack = self._made(self._places[part], moved[self._below[part]])
        return moved[stack] if not trail else stack

    def _cut_base(self, stack: int) -> int:
        """Down to the first place behind which its rule can't end at once."""
        if stack not in self._cuts:
            trail = []
            part = stack
            while part != NOTHING:
                trail.append(self._places[part])
                if not self._can_end[self._places[part]]:
                    break
                part = self._below[part]
            base = NOTHING
            for place in reversed(trail):
                base = self._made(place, base)
            self._cuts[stack] = base
        return self._cuts[stack]

    def _parts(self, stack: int) -> Sequence[int]:
        """What a stack with a rule on top stands for; nothing more when a terminal is there."""
        node = self._nodes[self._places[stack]]
        if not isinstance(node, int):
            self._known[stack] = (stack,)
            return ()
        rest = self.after(stack)
        return [rest if self._nodes[place] == _END else self._made(place, rest) for place in self._ways[node]]

    def _made(self, place: int, below: int) -> int:
        key = (place, below)
        if (number := self._numbers.get(key)) is None:
            if len(self._places) >= MAX_STACKS:
                raise GrammarError(
                    "the grammar is too large or too ambiguous: too much can follow one place of it"
                )
            number = self._numbers[key] = len(self._places)
            self._places.append(place)
            self._below.append(below)
            self._heights.append(self._heights[below] + 1)
            kind, offset, left = place, 0, 0
            if (counted := self._counted.get(self._rule_of[place])) is not None:
                first, left = counted
                kind, offset = -1 - first, place - self._ways[self._rule_of[place]][0]
            shape = (kind, offset, self._shapes[below])
            self._shapes.append(self._shape_numbers.setdefault(shape, len(self._shape_numbers) + 1))
            counts = self._counts[below]
            self._counts.append((*counts, left) if left else counts)
        return number

    def _find_ends(self, empty: Sequence[bool]) -> list[bool]:
        """Whether the rest of a sequence, from each place on, can be empty."""
        can_end = [True] * len(self._nodes)
        for place in range(len(self._nodes) - 1, -1, -1):
            node = self._nodes[place]
            if node != _END:
                can_end[place] = isinstance(node, int) and empty[node] and can_end[place + 1]
        return can_end
