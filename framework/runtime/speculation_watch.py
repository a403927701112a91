"""The yield watch of one model: what its answers show drafting to bring, and when that is a loss (05 §11.7).

Owned by the supervisor, told of every answer of every replica. Speeds are compared between processes that are
the same but for speculation, at one number of busy slots. It only judges: who acts on a verdict, and when, is
runtime.yield_care. What was drafted with before a verdict starts from nothing when it is tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from framework.planning.speculation.profit import (
    DEFAULT_LIMITS,
    Tally,
    WatchLimits,
    counts_as_plain,
    is_slower,
    unprofitable,
)
from framework.runtime.speed_store import Place, SpeedStore, plain
from framework.values.reason import Reason
from framework.values.spec_yield import PLAIN, AnswerSpeed, Drafting, SpecYield, SpeedAt

# A crash of the manager loses at most so much of what was measured.
KEEP_EVERY_S = 30.0
# Replicas on different devices are different launches; old ones are only of use in their files.
MOST_LAUNCHES = 8
# A model with more slots and ways to draft than this forgets what it has not used for longest.
MOST_PLACES = 128


@dataclass
class _Loss:
    """Since when, and until when so far, answers have shown drafting to be slower."""

    since_s: float
    last_s: float

    @property
    def seconds(self) -> float:
        return self.last_s - self.since_s


@dataclass
class _Launch:
    """Sums of all that is the same launch; the place used last stands last."""

    sums: dict[Place, Tally]
    losses: dict[Place, _Loss] = field(default_factory=dict)
    kept_at_s: float | None = None


@dataclass(frozen=True)
class _Trial:
    """What was judged, and when."""

    means: str
    at_s: float


class SpeculationWatch:
    """Speeds of one model. `store` keeps them over launches. All calls come from one event loop."""

    def __init__(self, store: SpeedStore, limits: WatchLimits = DEFAULT_LIMITS) -> None:
        self._store = store
        self.limits = limits
        self._launches: dict[str, _Launch] = {}
        self._judged: _Trial | None = None

    def note(self, speed: AnswerSpeed) -> None:
        """Take an answer into account."""
        if speed.generated < self.limits.min_tokens:
            return
        launch = self._launch(speed.by)
        is_plain = counts_as_plain(speed)
        place = plain(speed.busy_slots) if is_plain else _place(speed)
        tally = launch.sums.pop(place, Tally())
        launch.sums[place] = tally.plus(speed, self.limits.window_requests)
        while len(launch.sums) > MOST_PLACES:
            forgotten = next(iter(launch.sums))
            launch.sums.pop(forgotten)
            launch.losses.pop(forgotten, None)
        if not is_plain:
            self._compare(launch, place, speed.at_s)
        if launch.kept_at_s is None or speed.at_s - launch.kept_at_s >= KEEP_EVERY_S:
            launch.kept_at_s = speed.at_s
            self._store.keep(speed.by.launch, launch.sums)

    def save(self) -> None:
        """Write down what was measured; for the end of the model or the manager."""
        for key, launch in self._launches.items():
            self._store.keep(key, launch.sums)

    def speeds(self) -> tuple[SpeedAt, ...]:
        """By what drafted, then by busy slots; of several launches and ways the one used last."""
        found: dict[tuple[str, int], SpeedAt] = {}
        for launch in reversed(self._launches.values()):
            for speed in reversed(list(_speeds(launch))):
                found.setdefault((speed.running, speed.busy_slots), speed)
        return tuple(found[key] for key in sorted(found))

    def verdict(self) -> Reason | None:
        """`speculation_unprofitable` where drafting has been a loss for long enough; None otherwise."""
        for launch in reversed(self._launches.values()):
            for place, loss in launch.losses.items():
                if loss.seconds >= self.limits.loses_for_s:
                    return unprofitable(
                        place.running,
                        place.busy_slots,
                        launch.sums[place],
                        launch.sums.get(plain(place.busy_slots), Tally()),
                        loss.seconds,
                    )
        return None

    def seen(self, *, judges: bool = True) -> SpecYield:
        """All of it, for readers; without a verdict where nothing is to be judged."""
        return SpecYield(self.speeds(), self.verdict() if judges else None, self.limits.min_requests)

    def judged(self, by: Drafting, now_s: float) -> None:
        """A verdict was acted on: `by` is not to draft for now, and the next trial starts from nothing."""
        self._judged = _Trial(by.means, now_s)
        for launch in self._launches.values():
            launch.losses.clear()

    def _launch(self, by: Drafting) -> _Launch:
        """The launch an answer is of, as the one used last."""
        launch = self._launches.pop(by.launch, None) or _Launch(self._store.find(by.launch))
        self._launches[by.launch] = launch
        while len(self._launches) > MOST_LAUNCHES:
            self._launches.pop(next(iter(self._launches)))
        judged = self._judged
        if judged is not None and by.means == judged.means and by.ready_at_s > judged.at_s:
            self._judged = None
            launch.sums = {place: tally for place, tally in launch.sums.items() if place.means != by.means}
            launch.losses.clear()
        return launch

    def _compare(self, launch: _Launch, place: Place, at_s: float) -> None:
        baseline = launch.sums.get(plain(place.busy_slots), Tally())
        if not is_slower(launch.sums[place], baseline, self.limits):
            launch.losses.pop(place, None)
            return
        loss = launch.losses.setdefault(place, _Loss(at_s, at_s))
        loss.last_s = at_s


def _place(speed: AnswerSpeed) -> Place:
    return Place(speed.by.running, speed.by.means, speed.busy_slots)


def _speeds(launch: _Launch) -> Iterator[SpeedAt]:
    for place, tally in launch.sums.items():
        with_it = tally.tokens_per_s
        if place.running == PLAIN or with_it is None:
            continue
        baseline = launch.sums.get(plain(place.busy_slots), Tally())
        loss = launch.losses.get(place)
        yield SpeedAt(
            running=place.running,
            busy_slots=place.busy_slots,
            drafting_requests=tally.requests,
            drafting_tokens_per_s=with_it,
            acceptance=tally.acceptance,
            plain_requests=baseline.requests,
            plain_tokens_per_s=baseline.tokens_per_s,
            losing_s=None if loss is None else loss.seconds,
        )
