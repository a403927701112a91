"""An engine that answers no probe: when it is passed over, and when it is ended (07 §9, §10). Pure.

llama-server answers `/health` beside its decode, in milliseconds however long a batch takes (15 §5), so
silence tells more than slowness. What only is slow is spared all the same: a probe counts as silence of a
process that did no work meanwhile, or, ten times as long, of one that worked although a thread was free to
answer. Called by runtime.health_watch.
"""

from __future__ import annotations

from dataclasses import dataclass

from framework.values.reason import Reason


@dataclass(frozen=True)
class HealthLimits:
    """Times of the health watch, in seconds of a clock that stands still while the machine sleeps."""

    every_s: float = 5.0
    """Between two probes of an engine that answers: one costs it a fraction of a millisecond."""
    quick_s: float = 2.0
    """A first probe without an answer in this time makes other replicas come first."""
    patient_s: float = 10.0
    """What each further probe waits: no machine that still serves anybody takes as long for a few bytes."""
    pause_s: float = 1.0
    """Between those."""
    silent_after_s: float = 30.0
    """Silence of a process that does nothing: it is stopped, or waits for what never comes."""
    busy_after_s: float = 300.0
    """Silence of a process that works."""
    stalled_after_s: float = 120.0
    """How long its requests get nothing from a process that does nothing, though it answers probes."""
    fatal_after_s: float = 30.0
    """The same after it said that its device is lost or out of memory."""


DEFAULT_HEALTH = HealthLimits()
# One probe may be lost to a full backlog or a burst; a row of them is not.
LEAST_PROBES = 3


@dataclass
class Silence:
    """What was seen of an engine since the first probe that it left without an answer."""

    limits: HealthLimits
    probes: int = 0
    """Probes in a row that ran their full time, or were refused."""
    total_s: float = 0.0
    quiet_s: float = 0.0
    """Since it was last seen to work."""
    free_s: float = 0.0
    """In which no more requests were open than it has slots, so that a thread could have answered."""

    def missed(self, seconds: float, *, worked: bool, crowded: bool) -> None:
        """A probe, with the pause before it, went by without an answer."""
        self.probes += 1
        self.total_s += seconds
        self.quiet_s = 0.0 if worked else self.quiet_s + seconds
        self.free_s = 0.0 if crowded else self.free_s + seconds

    @property
    def is_over(self) -> bool:
        """Whether nobody should wait for it any longer."""
        if self.probes < LEAST_PROBES:
            return False
        return self.quiet_s >= self.limits.silent_after_s or self.free_s >= self.limits.busy_after_s


def engine_silent(waited_s: float, limits: HealthLimits) -> Reason:
    """What is shown while it is waited for."""
    return Reason(
        "engine_silent",
        f"The engine did not answer a health check for {waited_s:.0f} s; requests go to other replicas where"
        f" there are any. It is ended after {limits.silent_after_s:.0f} s in which it does no work,"
        f" and after {limits.busy_after_s:.0f} s if it works on.",
        "Nothing, if the machine is busy: an engine that answers again serves on.",
        "warning",
        {"waited_s": round(waited_s, 1)},
    )


def engine_hung(silence: Silence, *, is_stopped: bool) -> Reason:
    """Why it was ended."""
    doing = "and worked on" if silence.quiet_s < silence.limits.silent_after_s else "and did no work"
    if is_stopped:
        doing = "and its process is stopped (SIGSTOP or a debugger)"
    remedy = (
        "Do not stop processes of Paddock; `paddock unload` gives their memory back."
        if is_stopped
        else "Look at `paddock logs`; if it comes back, update llama.cpp and the GPU's driver."
    )
    return Reason(
        "engine_hung",
        f"The engine answered none of {silence.probes} health checks in {silence.total_s:.0f} s {doing};"
        " the process was ended and is started again.",
        remedy,
        "error",
        {"probes": silence.probes, "silent_s": round(silence.total_s, 1), "is_stopped": is_stopped},
    )
