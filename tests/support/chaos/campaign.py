"""A row of faults under load, and the counts at its end."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.support.chaos.faults import Fault
from tests.support.chaos.judging import ALLOWED
from tests.support.chaos.models import WORDS
from tests.support.chaos.processes import Held
from tests.support.chaos.world import World

MIB = 2**20
# What a process that has answered thousands of requests may hold more than one that has answered a few: pools
# of the allocator, events in memory (bounded), code that is read in when it is first needed.
GROWTH_BYTES = 48 * MIB
# For connections that are just being closed.
CALM_S = 1.0


@dataclass(frozen=True)
class Calm:
    """What `up` held before and after, with no client there, in the same process."""

    before: Held
    after: Held

    @property
    def leaks(self) -> list[str]:
        """What did not come back."""
        found = []
        if self.after.descriptors > self.before.descriptors:
            found.append(f"descriptors: {self.before.descriptors} -> {self.after.descriptors}")
        if self.after.sockets > self.before.sockets:
            found.append(f"sockets: {self.before.sockets} -> {self.after.sockets}")
        if self.after.rss_bytes > self.before.rss_bytes + GROWTH_BYTES:
            found.append(f"MiB: {self.before.rss_bytes // MIB} -> {self.after.rss_bytes // MIB}")
        return found


@dataclass(frozen=True)
class Counts:
    """The end of a run. All lists are empty where all is well."""

    verdicts: Mapping[str, int]
    codes: Mapping[str, int]
    bad: Sequence[str]
    """Requests that ended in none of the ways that are allowed."""
    run_twice: Sequence[str]
    orphans: Sequence[str]
    zombies: Sequence[int]
    leaks: Sequence[str]

    @property
    def faults(self) -> list[str]:
        """Everything that must not be."""
        return [
            *self.bad,
            *(f"run twice: {one}" for one in self.run_twice),
            *(f"orphan: {one}" for one in self.orphans),
            *(f"zombie: {one}" for one in self.zombies),
            *(f"leak: {one}" for one in self.leaks),
        ]

    @property
    def summary(self) -> str:
        """In one line."""
        seen = ", ".join(f"{self.verdicts.get(kind, 0)} {kind}" for kind in ALLOWED)
        codes = ", ".join(f"{count} {code}" for code, count in sorted(self.codes.items()))
        return f"{seen}; errors: {codes or 'none'}; {len(self.faults)} faults"


class Campaign:
    """Runs faults on a world. `say` gets a line for each."""

    def __init__(self, world: World, seed: int, say: Callable[[str], None] = print) -> None:
        self.world = world
        self.dice = random.Random(seed)
        self._say = say
        self.recovered_s: dict[str, list[float]] = {}
        """What each fault took until every model answered again, in seconds."""
        self._leaks: list[str] = []
        self._before = self.calm()
        world.clients.start()

    def run(self, name: str, fault: Fault) -> None:
        """One fault, and what it takes until every model answers again."""
        began = time.monotonic()
        told = fault(self.world, random.Random(self.dice.random()))
        self.world.wait_answers()
        seconds = time.monotonic() - began
        self.recovered_s.setdefault(name, []).append(seconds)
        self._say(f"{name}: {told}; all models answer after {seconds:.1f} s")

    def run_all(self, faults: Sequence[tuple[str, Fault]]) -> None:
        """Several at once."""
        with ThreadPoolExecutor(len(faults)) as pool:
            list(pool.map(lambda pair: self.run(*pair), faults))

    def calm(self) -> Held:
        """What `up` holds when nobody asks and everything is ready."""
        world = self.world
        world.clients.stop()
        world.wait_serving()
        for word in WORDS:
            verdict = world.clients.ask(word)
            assert verdict.kind == "whole", verdict
        return world.settled(Held(0, 0, 0), timeout_s=CALM_S)

    def check_leaks(self) -> Calm:
        """Stop the clients, compare with the start, go on. To be called in the same life of `up`."""
        world = self.world
        world.clients.stop()
        world.wait_serving()
        calm = Calm(self._before, world.settled(self._before))
        self._leaks += calm.leaks
        self._say(f"held at the start {self._before}, now {calm.after}")
        world.clients.start()
        return calm

    def new_life(self) -> None:
        """`up` is another process: what it holds now is the start."""
        self._before = self.calm()
        self.world.clients.start()

    def counts(self) -> Counts:
        """The end: no client any more, and what is left."""
        world = self.world
        world.clients.stop()
        world.wait_serving()
        ready = world.ready()
        orphans = [f"{pid} {name}" for pid, name in world.engines().items() if pid not in ready]
        tally = world.clients.tally
        counts = Counts(
            dict(tally.verdicts),
            dict(tally.codes),
            tuple(tally.bad),
            world.run_twice(),
            orphans,
            world.zombies(),
            tuple(self._leaks),
        )
        self._say(f"{counts.summary}; {world.runs()} runs in the engines' logs")
        return counts
