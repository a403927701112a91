"""Whether drafting pays: sums of answers, the comparison of two of them, what is said of it (05 §11.7). Pure.

Called by runtime.speculation_watch, which decides what is compared with what, and by runtime.instance for a
type that runs and never drafts.
"""

from __future__ import annotations

from dataclasses import dataclass

from framework.values.reason import Reason
from framework.values.spec_yield import PLAIN, AnswerSpeed, SpecTotals
from framework.values.speculation import drafts_by_model

INACTIVE = "speculation_inactive"
"""Code of the reason for what is to draft and does not."""
UNPROFITABLE = "speculation_unprofitable"
"""Code of the reason for drafting that is slower than none."""


@dataclass(frozen=True)
class WatchLimits:
    """When drafting counts as a loss. Lengths are tokens, times seconds."""

    min_requests: int = 20
    """Answers that each side must have at one number of busy slots."""
    least_ratio: float = 0.97
    """Share of the speed without drafting that drafting must reach."""
    loses_for_s: float = 600.0
    """How long answers must have shown it to be slower; one busy minute of another program is no proof."""
    min_tokens: int = 16
    """Shorter answers say nothing: their time is mostly that of the first token."""
    window_requests: int = 200
    """Older answers fade out, so that a speed is that of now."""
    inactive_tokens: int = 100
    """Tokens without a single draft after which a type that has a model draft counts as inactive (SP-01)."""
    quiet_s: float = 30.0
    """How long an instance must have had nothing to do before it is restarted for this."""
    again_after_s: float = 24 * 3600.0
    """When drafting that did not pay is tried again."""


DEFAULT_LIMITS = WatchLimits()


@dataclass(frozen=True)
class Tally:
    """Sums over recent answers. Beyond the window all shrink in step, so their ratios are means of now."""

    requests: int = 0
    """Answers in all, without fading."""
    tokens: float = 0.0
    seconds: float = 0.0
    drafted: float = 0.0
    accepted: float = 0.0

    def plus(self, speed: AnswerSpeed, window_requests: int) -> Tally:
        """With one more answer."""
        keep = 1.0 if self.requests < window_requests else 1.0 - 1.0 / window_requests
        return Tally(
            self.requests + 1,
            self.tokens * keep + speed.generated,
            self.seconds * keep + speed.seconds,
            self.drafted * keep + speed.drafted,
            self.accepted * keep + speed.accepted,
        )

    @property
    def tokens_per_s(self) -> float | None:
        """Of one request; None while there are none."""
        return self.tokens / self.seconds if self.seconds > 0 else None

    @property
    def acceptance(self) -> float | None:
        """Share of drafted tokens that were right; None where none were drafted."""
        return self.accepted / self.drafted if self.drafted > 0 else None


def is_slower(drafting: Tally, plain: Tally, limits: WatchLimits) -> bool | None:
    """Whether drafting falls short of the margin; None while one side has too few answers to say."""
    if min(drafting.requests, plain.requests) < limits.min_requests:
        return None
    with_it, without = drafting.tokens_per_s, plain.tokens_per_s
    if with_it is None or without is None:
        return None
    return with_it < limits.least_ratio * without


def counts_as_plain(speed: AnswerSpeed) -> bool:
    """Whether an answer tells the speed without drafting: of a process that drafts nothing.

    Answers in which n-grams happened to draft nothing are none: they are short and new where others are long
    and repeat, and a token costs more in a long context.
    """
    return speed.by.running == PLAIN and not speed.drafted


def unprofitable(
    running: str, busy_slots: int, drafting: Tally, plain: Tally, losing_s: float
) -> Reason | None:
    """Why drafting is to end: it was slower for so long. None without speeds to tell."""
    with_it, without = drafting.tokens_per_s, plain.tokens_per_s
    if with_it is None or without is None:
        return None
    slots = "1 busy slot" if busy_slots == 1 else f"{busy_slots} busy slots"
    ratio = with_it / without
    return Reason(
        "speculation_unprofitable",
        f"Drafting with {running} is slower than plain decoding: {with_it:.1f} tokens/s for each request"
        f" against {without:.1f}, {ratio:.2f} times, with {slots}, for {losing_s:.0f} s and"
        f" {drafting.requests} answers.",
        'Nothing has to be done. `yield_watch = "switch-off"` ends it at a quiet moment, by a restart without'
        " drafting or by another replica, since this engine ignores a depth per request, and tries it again"
        ' later; `"report"` keeps it running.',
        "warning",
        {
            "running": running,
            "busy_slots": busy_slots,
            "ratio": round(ratio, 3),
            "drafting_tokens_per_s": round(with_it, 2),
            "plain_tokens_per_s": round(without, 2),
            "drafting_requests": drafting.requests,
            "plain_requests": plain.requests,
            "losing_s": round(losing_s, 1),
        },
    )


def inactive(running: str | None, totals: SpecTotals, limits: WatchLimits = DEFAULT_LIMITS) -> Reason | None:
    """A head or drafter that runs and has drafted nothing over enough tokens (SP-01)."""
    if not drafts_by_model(running) or totals.drafted or totals.generated < limits.inactive_tokens:
        return None
    return Reason(
        "speculation_inactive",
        f"{running} runs, but not one token was drafted while {totals.generated} were generated in"
        f" {totals.requests} answers.",
        "Look at `paddock logs` for what the engine says of its drafter; another drafter or mode may draft.",
        "warning",
        {"running": running, "generated_tokens": totals.generated, "requests": totals.requests},
    )
