"""Requests as public traces show them, made by chance from a seed: few models are asked for most, in bursts,
by day more than by night, by people who come whenever they like and by programs that ask without a pause.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import pi, sin

from framework.planning.pools.cards import Card
from framework.planning.pools.simulation import Ask, SimulatedModel

GB = 10**9
DAY_S = 86_400.0
CARDS = tuple(Card(f"CUDA{number}", int(80 * GB * 0.97)) for number in range(8))
# Sizes of weights and caches together, and how many of 100 models have them: most are small.
SIZES_GB = ((3, 20), (6, 25), (10, 20), (18, 15), (24, 8), (40, 8), (70, 3), (120, 1))
READ_BYTES_PER_S = 3 * GB
START_S = 3.0
# Popularity of the n-th model is n to the power of minus this.
SKEW = 1.0


@dataclass(frozen=True)
class Trace:
    """Clients, and what they ask for."""

    name: str
    clients: Sequence[Sequence[Ask]]
    cards: Sequence[Card]
    models: Sequence[SimulatedModel]


def inventory(count: int, seed: int) -> list[SimulatedModel]:
    """Models of all sizes; the first are the most popular, whatever their size."""
    dice = random.Random(seed)
    sizes = dice.choices([size for size, _ in SIZES_GB], [weight for _, weight in SIZES_GB], k=count)
    return [_model(f"m{number}", size * GB) for number, size in enumerate(sizes)]


def everyday(requests: int, models: int = 200, seed: int = 1) -> Trace:
    """People of one time zone over a day; a model that is asked for is often asked for again soon."""
    dice = random.Random(seed)
    shelf = inventory(models, seed)
    times = sorted(_by_day(dice) for _ in range(requests))
    pick = _popular(dice, shelf)
    clients, model = [], pick()
    for at_s in times:
        if dice.random() > 0.5:
            model = pick()
        clients.append([Ask(model.name, _answer_s(dice), at_s)])
    return Trace(f"a day, {requests:,} requests", clients, CARDS, shelf)


def bursts(requests: int, models: int = 200, seed: int = 2) -> Trace:
    """Programs that send 5 to 60 requests to one model within a minute, at any time of six hours."""
    dice = random.Random(seed)
    shelf = inventory(models, seed)
    pick = _popular(dice, shelf)
    clients: list[list[Ask]] = []
    while len(clients) < requests:
        model, start_s = pick(), dice.uniform(0, DAY_S / 4)
        for _ in range(dice.randint(5, 60)):
            clients.append([Ask(model.name, _answer_s(dice), start_s + dice.uniform(0, 60))])
    return Trace(f"bursts, {len(clients):,} requests", clients, CARDS, shelf)


def conversations(people: int, models: int = 200, seed: int = 3) -> Trace:
    """People who ask, read, and ask the same model again; between conversations they choose anew."""
    dice = random.Random(seed)
    shelf = inventory(models, seed)
    pick = _popular(dice, shelf)

    def script() -> Iterator[Ask]:
        for _ in range(dice.randint(3, 12)):
            model, pause_s = pick(), dice.uniform(60, 1800)
            for _ in range(dice.randint(1, 15)):
                yield Ask(model.name, _answer_s(dice), pause_s)
                pause_s = dice.expovariate(1 / 30)

    clients = [list(script()) for _ in range(people)]
    return Trace(f"conversations of {people} people", clients, CARDS, shelf)


def agents(programs: int, each: int, seed: int = 4) -> Trace:
    """Programs that ask without a pause, each from three of 12 large models, of which 8 fit."""
    dice = random.Random(seed)
    shelf = [_model(f"large{number}", 60 * GB) for number in range(12)]
    clients = []
    for _ in range(programs):
        liked = dice.sample(shelf, 3)
        clients.append([Ask(dice.choice(liked).name, dice.uniform(0.5, 8), 0.05) for _ in range(each)])
    return Trace(f"{programs} programs, 12 large models", clients, CARDS, shelf)


def rotation(rounds: int) -> Trace:
    """A, B, C, A, B, C, from eight clients that started at different places, where one fits at a time."""
    shelf = [_model(name, 50 * GB) for name in ("A", "B", "C")]
    clients = [
        [Ask(shelf[(start + step) % 3].name, 2.0, 0.05) for step in range(3 * rounds)] for start in range(8)
    ]
    return Trace("ABCABC on one GPU", clients, CARDS[:1], shelf)


def at_random(seed: int = 6) -> Trace:
    """300 requests of eight clients to three small models, of which one fits at a time."""
    dice = random.Random(seed)
    shelf = [SimulatedModel(name, 50 * GB, load_s=1.0) for name in ("A", "B", "C")]
    clients = [
        [Ask(dice.choice(shelf).name, dice.uniform(0.1, 0.6), 0.0) for _ in range(37 + number % 2)]
        for number in range(8)
    ]
    return Trace("A, B or C on one GPU, 300 requests", clients, CARDS[:1], shelf)


def roomy(requests: int, seed: int = 5) -> Trace:
    """Twenty models that all fit at once: nobody has to do anything."""
    trace = everyday(requests, 20, seed)
    small = [_model(model.name, min(model.bytes, 24 * GB)) for model in trace.models]
    return Trace("a day, all 20 models fit", trace.clients, CARDS, small)


def _model(name: str, size_bytes: int) -> SimulatedModel:
    return SimulatedModel(name, size_bytes, START_S + size_bytes / READ_BYTES_PER_S)


class _Popular:
    def __init__(self, dice: random.Random, models: Sequence[SimulatedModel]) -> None:
        self._dice, self._models = dice, models
        self._weights = list(accumulate((place + 1) ** -SKEW for place in range(len(models))))

    def __call__(self) -> SimulatedModel:
        return self._dice.choices(self._models, cum_weights=self._weights)[0]


def _popular(dice: random.Random, models: Sequence[SimulatedModel]) -> _Popular:
    return _Popular(dice, models)


def _by_day(dice: random.Random) -> float:
    """A moment of the day: at noon, six times as many as at midnight."""
    while True:
        at_s = dice.uniform(0, DAY_S)
        if dice.random() < 0.58 - 0.42 * sin(2 * pi * at_s / DAY_S + pi / 2):
            return at_s


def _answer_s(dice: random.Random) -> float:
    """Most answers are short, some take minutes."""
    return min(300.0, dice.lognormvariate(1.6, 1.0))
