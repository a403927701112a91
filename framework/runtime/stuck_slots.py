"""Slots that generate for nobody and get nowhere: an engine that lost track of a client that left (SP-07).

Such a slot is never free again, and the requests that wait for it hang. Called by runtime.fleet for every
ready instance; goes by the samples of runtime.sampler, so an engine that does not answer is not judged here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from framework.runtime.instance import Instance
from framework.values.reason import Reason

# SP-07 asks for half a minute; a decode step of one token takes no such time.
STUCK_AFTER_S = 30.0

Progress = tuple[tuple[int, int], ...]
"""Number and generated tokens of each slot that generates."""


@dataclass(frozen=True)
class _Sight:
    progress: Progress
    since_s: float


@dataclass
class StuckSlots:
    """What was seen of each instance. Times are of samples."""

    after_s: float = STUCK_AFTER_S
    _seen: dict[str, _Sight] = field(default_factory=dict)

    def look(self, instance: Instance) -> Reason | None:
        """Why the process should be replaced; None as long as nothing is wrong with it."""
        progress = _without_client(instance) if instance.serving else ()
        if not progress or instance.sampled_s is None:
            self._seen.pop(instance.name, None)
            return None
        before = self._seen.get(instance.name)
        if before is None or before.progress != progress:
            self._seen[instance.name] = _Sight(progress, instance.sampled_s)
            return None
        stuck_s = instance.sampled_s - before.since_s
        if stuck_s < self.after_s:
            return None
        del self._seen[instance.name]
        return _slot_stuck(instance, progress, stuck_s)


def _without_client(instance: Instance) -> Progress:
    """Generating slots where more slots work than there are requests. While a prompt is read, others wait for
    its batch, so nothing can be said."""
    busy = [slot for slot in instance.slots if slot.state != "idle"]
    if len(busy) <= len(instance.leases) or any(slot.state != "generating" for slot in busy):
        return ()
    return tuple((slot.id, slot.generated) for slot in busy)


def _slot_stuck(instance: Instance, progress: Progress, stuck_s: float) -> Reason:
    speculation = instance.result.speculation if instance.result is not None else None
    slots = ", ".join(str(number) for number, _ in progress)
    return Reason(
        "slot_stuck",
        f"Slot {slots} of the engine worked for {stuck_s:.0f} s without a client and without a new token"
        f" (speculation: {speculation or 'none'}); the process was ended and is started again.",
        'Update llama.cpp; if it comes back, use a speculation policy with mode = "off".',
        "error",
        {"slots": [number for number, _ in progress], "speculation": speculation},
    )
