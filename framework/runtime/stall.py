"""An engine that answers probes while its requests get nothing (PL-03): a dead device behind a living server.

Judged by what costs nothing to see first: tokens and prompt progress on their way to clients, and in the
slots. Only where nothing of that moves is the process looked at, and one that works is left alone: a batch of
a long prompt shows no progress until it is done. Changed by runtime.health_watch; pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from framework.runtime.allocation import SHORTAGE
from framework.runtime.instance import Instance
from framework.runtime.logs import LogLine
from framework.runtime.process_work import Work
from framework.runtime.silence import HealthLimits
from framework.values.plain_text import brief
from framework.values.reason import Reason

WEDGED = "engine_wedged"
# 15 §1. Lines that only inform quote prompts and model files.
TROUBLE = re.compile(r"\d[\d.]* [WE] (.*)")
FATAL_WORDS = (*SHORTAGE, "memory allocation of size", "errordevicelost", "device lost", "device removed")

Mark = tuple[object, ...]


@dataclass
class Stall:
    """What was seen of one instance since its requests last got something."""

    limits: HealthLimits
    mark: Mark = ()
    """All that changes when a request gets on."""
    work: Work | None = None
    unmoved_s: float = 0.0
    """Since something of its requests was last seen to move."""
    quiet_s: float = 0.0
    """Of that, since the process was last seen to work."""
    heard: int = 0
    newest: int = 0
    """Number of the newest line of the log when a request was last seen to have got something."""

    def stands(self, instance: Instance, newest: int) -> bool:
        """Whether requests wait for the engine and nothing has moved since the last look."""
        heard = instance.heard + sum(lease.heard for lease in instance.leases)
        if heard != self.heard:
            self.heard, self.newest = heard, newest
        mark = (heard, *((slot.id, slot.generated, slot.prompt_done) for slot in instance.slots))
        if mark == self.mark and any(lease.listens for lease in instance.leases):
            return True
        self.mark, self.work = mark, None
        self.unmoved_s = self.quiet_s = 0.0
        return False

    def stood(self, seconds: float, work: Work | None, *, is_remote: bool) -> None:
        """Nothing moved for so long. `is_remote`: others may work for the process, which cannot be seen."""
        worked = is_remote or work is None or work.goes_on(self.work, seconds)
        self.work = work
        self.unmoved_s += seconds
        self.quiet_s = 0.0 if worked else self.quiet_s + seconds

    def verdict(self, instance: Instance, lines: Sequence[LogLine]) -> Reason | None:
        """Why the process should be ended. `lines` are the last ones of the log."""
        cause = fatal_line([line.text for line in lines if line.seq > self.newest])
        limits = self.limits
        quiet_limit_s = limits.fatal_after_s if cause else self._patience_s(instance)
        if self.quiet_s >= quiet_limit_s or (cause and self.unmoved_s >= limits.busy_after_s):
            return engine_wedged(self.unmoved_s, cause)
        return None

    def _patience_s(self, instance: Instance) -> float:
        """A model that somebody gave more time between two tokens has it here as well."""
        return max(self.limits.stalled_after_s, instance.request.live.stall_timeout_s)


def fatal_line(lines: Sequence[str]) -> str:
    """The first line after which a device may not work any more; empty when there is none."""
    for line in lines:
        found = TROUBLE.fullmatch(line)
        if found is not None and any(words in found[1].lower() for words in FATAL_WORDS):
            return found[1]
    return ""


def engine_wedged(seconds: float, cause: str) -> Reason:
    """Why it was ended."""
    told = f' It had said: "{brief(cause)}".' if cause else ""
    remedy = (
        "Use a shorter context, fewer slots or a smaller quantisation: the device has too little memory,"
        " or is lost."
        if cause
        else "Look at `paddock logs`; if it comes back, update llama.cpp and the GPU's driver."
    )
    return Reason(
        "engine_wedged",
        f"The engine answered health checks, but its requests got nothing for {seconds:.0f} s;"
        f" the process was ended and is started again.{told}",
        remedy,
        "error",
        {"stalled_s": round(seconds, 1), "line": brief(cause)},
    )
