"""The yield watch of one model: what its answers show drafting to bring, and when that is a loss (05 §11.7).

Owned by the supervisor, told of every answer of every replica. Speeds are compared between processes that are
the same but for speculation, at one number of busy slots. It only judges: who acts on a verdict, and when, is
runtime.yield_care. What was drafted with before a verdict starts from nothing when it is tried again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from framework.planning.speculation.profit import (
    DEFAULT_LIMITS,
    Tally,
    WatchLimits,
    counts_as_plain,
    is_slower,
    unprofitable,
)
from framework.runtime.speed_store import Place, SpeedStore, Sums, plain
from framework.values.reason import Reason
from framework.values.spec_yield import PLAIN, AnswerSpeed, Drafting, SpecYield, SpeedAt

# Replicas on different devices are different launches; old ones are only of use in their files.
MOST_LAUNCHES = 64
# Answers further apart than this, or than what is a loss, belong to no common time.
SILENCE_S = 60.0
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
    is_kept: bool = True
    """Whether the store has all of it."""


class SpeculationWatch:
    """Speeds of one model. `store` keeps them over launches. All calls come from one event loop."""

    def __init__(self, store: SpeedStore, limits: WatchLimits = DEFAULT_LIMITS) -> None:
        self._store = store
        self.limits = limits
        self._launches: dict[str, _Launch] = {}
        self._judged: Drafting | None = None

    def note(self, speed: AnswerSpeed) -> None:
        """Take an answer into account."""
        is_plain = counts_as_plain(speed)
        # Drafts of a process that is said to have none make it neither one nor the other.
        if speed.generated < self.limits.min_tokens or (speed.by.running == PLAIN and not is_plain):
            return
        launch = self._launch(speed.by)
        place = plain(speed.busy_slots) if is_plain else _place(speed)
        tally = launch.sums.pop(place, Tally())
        launch.sums[place] = tally.plus(speed, self.limits.window_requests)
        while len(launch.sums) > MOST_PLACES:
            forgotten = next(iter(launch.sums))
            launch.sums.pop(forgotten)
            launch.losses.pop(forgotten, None)
        launch.is_kept = False
        if not is_plain:
            self._compare(launch, place, speed.at_s)

    def unsaved(self) -> Mapping[str, Sums]:
        """Sums that the store does not have yet, by launch; they count as written from now on."""
        found = {key: dict(launch.sums) for key, launch in self._launches.items() if not launch.is_kept}
        for key in found:
            self._launches[key].is_kept = True
        return found

    def write(self, sums: Mapping[str, Sums]) -> None:
        """Keep such sums. Blocking; uses nothing else of the watch."""
        for key, one in sums.items():
            self._store.keep(key, one)

    def speeds(self) -> tuple[SpeedAt, ...]:
        """By what drafted, then by busy slots; of several launches and ways the one used last."""
        found: dict[tuple[str, int], SpeedAt] = {}
        for launch in reversed(self._launches.values()):
            for speed in reversed(list(_speeds(launch))):
                found.setdefault((speed.running, speed.busy_slots), speed)
        return tuple(found[key] for key in sorted(found))

    def verdict(self, serving: Collection[Drafting]) -> Reason | None:
        """`speculation_unprofitable` where what drafts now was a loss for long enough; None otherwise."""
        ways = {(one.launch, one.means) for one in serving if not self._is_another_trial(one)}
        for key, launch in reversed(self._launches.items()):
            for place, loss in launch.losses.items():
                if (key, place.means) in ways and loss.seconds >= self.limits.loses_for_s:
                    return unprofitable(
                        place.running,
                        place.busy_slots,
                        launch.sums[place],
                        launch.sums.get(plain(place.busy_slots), Tally()),
                        loss.seconds,
                    )
        return None

    def seen(self, verdict: Reason | None) -> SpecYield:
        """All of it, for readers."""
        return SpecYield(self.speeds(), verdict, self.limits.min_requests)

    def judged(self, by: Drafting, now_s: float) -> None:
        """A verdict is acted on: what is ready to draft as `by` after `now_s` starts from nothing."""
        self._judged = replace(by, ready_at_s=now_s)

    def _launch(self, by: Drafting) -> _Launch:
        """The launch an answer is of, as the one used last."""
        launch = self._launches.pop(by.launch, None) or _Launch(self._store.find(by.launch))
        self._launches[by.launch] = launch
        while len(self._launches) > MOST_LAUNCHES:
            oldest = next(iter(self._launches))
            self.write({oldest: self._launches.pop(oldest).sums})
        if self._is_another_trial(by):
            self._judged = None
            launch.sums = {place: tally for place, tally in launch.sums.items() if place.means != by.means}
            launch.losses.clear()
        return launch

    def _is_another_trial(self, by: Drafting) -> bool:
        """Whether it was started to draft again after a verdict: what was before counts for nothing."""
        judged = self._judged
        return judged is not None and by.means == judged.means and by.ready_at_s > judged.ready_at_s

    def _compare(self, launch: _Launch, place: Place, at_s: float) -> None:
        baseline = launch.sums.get(plain(place.busy_slots), Tally())
        if not is_slower(launch.sums[place], baseline, self.limits):
            launch.losses.pop(place, None)
            return
        loss = launch.losses.get(place)
        # A night without requests is no night of losses.
        if loss is None or at_s - loss.last_s > max(self.limits.loses_for_s, SILENCE_S):
            loss = launch.losses[place] = _Loss(at_s, at_s)
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
