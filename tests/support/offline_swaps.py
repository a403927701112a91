"""How few swaps would have been enough, had all requests been known from the start.

For clients that each wait for an answer before they ask again, and models of which `capacity` fit at once.
Time plays no role: what is resident may answer as much as anybody asks, which is the best that any order in
time can do. With room for one, it is the shortest common supersequence of what the clients ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

Position = tuple[int, ...]
"""How many requests of each client are answered."""
State = tuple[Position, frozenset[str]]

# Clients whose requests alone are searched without a limit, for a bound from below; states looked at for it.
BOUND_CLIENTS = 3
BOUND_STATES = 20_000
BEAM = 500


def fewest_swaps(sequences: Iterable[Sequence[str]], capacity: int = 1) -> tuple[int, int]:
    """(no schedule needs fewer, a schedule with so many was found): loads for which a resident had to leave.

    `sequences` are the models that each client asks for, in order. Equal numbers are the exact optimum.
    """
    clients = [tuple(sequence) for sequence in sequences if sequence]
    found = _search(clients, capacity, BEAM)
    if found.is_exact:
        return found.swaps, found.swaps
    return min(_lower_bound(clients, capacity), found.swaps), found.swaps


@dataclass(frozen=True)
class _Found:
    swaps: int
    is_exact: bool


def _lower_bound(clients: list[tuple[str, ...]], capacity: int) -> int:
    """What a few of the clients need alone: the hardest pair, and others added while that is still exact."""
    pairs = [list(pair) for pair in combinations(clients, 2)] or [clients]
    best = max(pairs, key=lambda pair: _search(pair, capacity, BOUND_STATES).swaps)
    bound = _search(best, capacity, BOUND_STATES).swaps
    while len(best) < min(BOUND_CLIENTS, len(clients)):
        others = [client for client in clients if not any(client is taken for taken in best)]
        tried = [([*best, client], _search([*best, client], capacity, BOUND_STATES)) for client in others]
        exact = [(group, found.swaps) for group, found in tried if found.is_exact]
        if not exact:
            break
        best, swaps = max(exact, key=lambda pair: pair[1])
        bound = max(bound, swaps)
    return bound


def _search(clients: list[tuple[str, ...]], capacity: int, width: int) -> _Found:
    """Swap by swap, keeping the `width` states that have most behind them; exact while none was dropped."""
    end = tuple(len(client) for client in clients)
    left = [_changes_left(client) for client in clients]
    models = sorted({model for client in clients for model in client})
    room = min(capacity, len(models))
    start = tuple(0 for _ in clients)
    layer = {
        (_advanced(start, clients, first), first) for first in map(frozenset, combinations(models, room))
    }
    swaps, is_exact = 0, True
    while not any(position == end for position, _ in layer):
        swaps += 1
        following = {after for state in layer for after in _after(state, clients)}
        layer = following
        if len(following) > width:
            is_exact = False
            layer = set(sorted(following, key=lambda state: _rest(state[0], left))[:width])
    return _Found(swaps, is_exact)


def _after(state: State, clients: list[tuple[str, ...]]) -> Iterable[State]:
    """Every state one swap later in which somebody came further."""
    position, resident = state
    asked = {client[at] for client, at in zip(clients, position, strict=True) if at < len(client)}
    for model in asked:
        for leaving in resident:
            now = (resident - {leaving}) | {model}
            yield _advanced(position, clients, now), now


def _advanced(position: Position, clients: list[tuple[str, ...]], resident: frozenset[str]) -> Position:
    """As far as each client comes with these models."""
    moved = []
    for client, start in zip(clients, position, strict=True):
        at = start
        while at < len(client) and client[at] in resident:
            at += 1
        moved.append(at)
    return tuple(moved)


def _changes_left(client: tuple[str, ...]) -> list[int]:
    """From each position, how often the client will still go from one model to another."""
    left = [0] * (len(client) + 1)
    for at in range(len(client) - 1, -1, -1):
        is_change = at + 1 < len(client) and client[at] != client[at + 1]
        left[at] = max(1, left[at + 1] + is_change)
    return left


def _rest(position: Position, left: list[list[int]]) -> tuple[int, int]:
    """How far a state is from the end: the sum decides, and the furthest client among equals."""
    rest = [of_client[at] for of_client, at in zip(left, position, strict=True)]
    return sum(rest), max(rest)
