"""Slots that generate and get nowhere: an engine that lost track of a client that left (SP-07).

Such a slot is never free again, and the requests that wait for it hang. Called by runtime.fleet for every
ready instance; goes by the samples of runtime.sampler, so an engine that does not answer is not judged here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from framework.runtime.instance import Instance
from framework.values.reason import Reason

# SP-07 asks for half a minute.
STUCK_AFTER_S = 30.0


@dataclass(frozen=True)
class _Sight:
    """What a slot had generated, and since which sample."""

    task_tokens: int
    since_s: float


@dataclass
class StuckSlots:
    """What was seen of each instance, by number of the slot. Times are of samples."""

    after_s: float = STUCK_AFTER_S
    _seen: dict[str, dict[int, _Sight]] = field(default_factory=dict)

    def keep(self, names: frozenset[str]) -> None:
        """Forget all but these instances."""
        self._seen = {name: sights for name, sights in self._seen.items() if name in names}

    def look(self, instance: Instance) -> Reason | None:
        """Why the process should be replaced; None as long as nothing is wrong with it."""
        busy = [slot for slot in instance.slots if slot.state != "idle"] if instance.serving else []
        # While a prompt is read, the others wait for its batch, so nothing can be said.
        if instance.sampled_s is None or any(slot.state != "generating" for slot in busy):
            busy = []
        at_s = instance.sampled_s or 0.0
        before = self._seen.get(instance.name, {})
        sights = {}
        for slot in busy:
            known = before.get(slot.id)
            is_same = known is not None and known.task_tokens == slot.generated
            sights[slot.id] = known if known is not None and is_same else _Sight(slot.generated, at_s)
        self._seen[instance.name] = sights
        limit_s = self._limit_s(instance, len(busy))
        stuck = {number: at_s - sight.since_s for number, sight in sights.items()}
        stuck = {number: seconds for number, seconds in stuck.items() if seconds >= limit_s}
        if not stuck:
            return None
        del self._seen[instance.name]
        return _slot_stuck(instance, stuck)

    def _limit_s(self, instance: Instance, busy: int) -> float:
        """Where requests explain the slots, one may wait as long as its client would for a token."""
        if busy > len(instance.leases):
            return self.after_s
        return max(self.after_s, instance.request.live.stall_timeout_s)


def _slot_stuck(instance: Instance, stuck: dict[int, float]) -> Reason:
    speculation = instance.result.speculation if instance.result is not None else None
    slots = ", ".join(str(number) for number in stuck)
    return Reason(
        "slot_stuck",
        f"Slot {slots} of the engine generated for {max(stuck.values()):.0f} s without a new token"
        f" (speculation: {speculation or 'none'}); the process was ended and is started again.",
        'Update llama.cpp; if it comes back, use a speculation policy with mode = "off".',
        "error",
        {"slots": list(stuck), "speculation": speculation},
    )
