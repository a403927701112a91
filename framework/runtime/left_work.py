"""Requests that an engine still works on for nobody when it is taken over (07 §8.7).

Their clients went with the earlier manager, and engines notice that late: only at the end of a batch, or,
where the answer is not streamed, not at all. Each of them holds a lease, so that the engine counts as
busy: it is not idle, makes no room, and a drain waits for it as for any request. Called by runtime.fleet;
goes by the samples of runtime.sampler.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from framework.runtime.instance import Instance
from framework.runtime.lease import Lease
from framework.values.instance import Slot

# A prompt is read in batches, and the engine says nothing of its slots meanwhile (15 §5). What has not spoken
# after this never will.
UNKNOWN_FOR_S = 60.0


@dataclass
class _Held:
    """The leases of one engine, by slot, with the tokens that each had generated at the last look."""

    instance: Instance
    since_s: float
    unknown: Lease | None
    """Held until the slots are known."""
    slots: dict[int, tuple[Lease, int]] = field(default_factory=dict)

    @property
    def leases(self) -> list[Lease]:
        return [*(lease for lease, _ in self.slots.values()), *([self.unknown] if self.unknown else [])]


@dataclass
class LeftWork:
    """What engines still do that were taken over."""

    clock: Callable[[], float] = time.monotonic
    _held: dict[str, _Held] = field(default_factory=dict)

    def begin(self, instance: Instance) -> None:
        """It was taken over in this turn of the loop: nobody has asked it anything yet."""
        self._held[instance.name] = _Held(instance, self.clock(), instance.lease())

    def look(self) -> None:
        """Give back the leases of what is done by now."""
        for name, held in tuple(self._held.items()):
            slots = {slot.id: slot for slot in held.instance.slots}
            if held.unknown is not None and held.instance.sampled_s is not None:
                held.slots = _hold(held.instance, slots)
                held.unknown.release()
                held.unknown = None
            elif held.unknown is not None and self.clock() - held.since_s > UNKNOWN_FOR_S:
                held.unknown.release()
                held.unknown = None
            for number, (lease, generated) in tuple(held.slots.items()):
                slot = slots.get(number)
                # Fewer tokens than before are those of another request.
                if slot is None or slot.state == "idle" or slot.generated < generated:
                    lease.release()
                    del held.slots[number]
                else:
                    held.slots[number] = (lease, slot.generated)
            if not held.instance.process_alive or any(lease.revoked.done() for lease in held.leases):
                # Nothing can call such a request off but the end of the process.
                for lease in held.leases:
                    lease.release()
                held.slots, held.unknown = {}, None
            if not held.leases:
                del self._held[name]


def _hold(instance: Instance, slots: Mapping[int, Slot]) -> dict[int, tuple[Lease, int]]:
    """A lease for each slot that works on something that no request of ours explains."""
    busy = [slot for slot in slots.values() if slot.state != "idle"]
    own = len(instance.leases) - 1
    if not instance.process_alive:
        return {}
    return {slot.id: (instance.lease(), slot.generated) for slot in busy[own:]}
