"""What speculation was measured to bring: one answer, sums of an instance, speeds of a model (05 §11.7).

Values only. Made by runtime.instance and runtime.speculation_watch; shown by the API, the pages and metrics.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from framework.values.reason import Reason

PLAIN = "none"
"""The running value of a process that drafts nothing."""


@dataclass(frozen=True)
class Drafting:
    """What a process is as far as its speed goes. Speeds are compared where `launch` is the same."""

    launch: str
    """Digest of program, model and settings apart from speculation."""
    running: str
    """What drafts in it, `none` for nothing (05 §1.3)."""
    means: str = ""
    """Digest of how it drafts: type, drafter, depth; empty where nothing does."""
    ready_at_s: float = 0.0
    """Since when it answers, by `time.monotonic`."""


@dataclass(frozen=True)
class AnswerSpeed:
    """One answer by the engine's own clock. Counts are tokens; decoding only, without the prompt."""

    by: Drafting
    busy_slots: int
    """Requests that the process served meanwhile, this one included: the mean over its time, rounded."""
    generated: int
    seconds: float
    drafted: int
    accepted: int
    at_s: float
    """When it ended, by `time.monotonic`."""


@dataclass(frozen=True)
class SpecTotals:
    """What one instance drafted since it was ready. Counts are tokens; all zero where nothing drafts."""

    requests: int = 0
    """Answers with a count of tokens."""
    generated: int = 0
    drafted: int = 0
    accepted: int = 0
    drafted_by_position: tuple[int, ...] = ()
    """Drafts that the counts below are of, for each position: the engine divides by all drafts, short ones
    too. Empty where it does not say."""
    accepted_by_position: tuple[int, ...] = ()
    """How often the first, second ... token of a draft was right."""

    @property
    def acceptance(self) -> float | None:
        """Share of drafted tokens that were right, 0 to 1; None while nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None


NO_TOTALS = SpecTotals()


@dataclass(frozen=True)
class SpeedAt:
    """Decoding speed per request with drafting and without, at one number of busy slots."""

    running: str
    """What drafted: `draft-mtp`, `ngram-mod` ... (05 §1.3)."""
    busy_slots: int
    drafting_requests: int
    """Recent answers measured while it drafted."""
    drafting_tokens_per_s: float
    acceptance: float | None
    """Share of drafted tokens that were right, 0 to 1; None where nothing was drafted."""
    plain_requests: int = 0
    plain_tokens_per_s: float | None = None
    """Without drafting; None until measured."""
    losing_s: float | None = None
    """For how long answers have shown drafting to be slower than allowed; None while it is not."""

    @property
    def speedup(self) -> float | None:
        """Speed with drafting over speed without; above 1 it pays. None until both are measured."""
        plain = self.plain_tokens_per_s
        return self.drafting_tokens_per_s / plain if plain else None


def best_known(speeds: Iterable[SpeedAt], running: str | None = None) -> SpeedAt | None:
    """The comparison that rests on most answers, of what runs now if that is said; None without one."""
    known = [one for one in speeds if one.speedup is not None and running in (None, one.running)]
    return max(known, key=lambda one: min(one.drafting_requests, one.plain_requests), default=None)


@dataclass(frozen=True)
class SpecYield:
    """What the yield watch of one model knows."""

    speeds: tuple[SpeedAt, ...] = ()
    """By what drafted, then by busy slots."""
    verdict: Reason | None = None
    """`speculation_unprofitable` while drafting is to be ended; None otherwise."""
    needed_requests: int = 0
    """Answers that each side must have, at one number of busy slots, before speeds are compared."""


NOT_MEASURED = SpecYield()
