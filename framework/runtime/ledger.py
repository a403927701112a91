"""Who holds memory of which device: promised from the plan on, until the process is gone.

The one truth about our own bytes (07 §12.4): several kinds of devices never list less as free when something
loads. Changed by runtime.admission and by whoever ends an instance, synchronously; read for decisions, pages
and the device probe, which must leave servers alone that one process at a time can use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import psutil

from framework.runtime.instance import Instance
from framework.values.instance import State
from framework.values.plan import Placement
from framework.values.pool import Holding, Resident

LEAVING = frozenset({State.DRAINING, State.STOPPING})


@dataclass
class _Entry:
    instance: Instance
    placement: Placement
    is_going: Callable[[Instance], bool]
    evict: Callable[[str], None]
    endpoints: frozenset[str]
    survivors: tuple[int, ...] = ()
    """Processes that outlived SIGKILL (07 §5.4)."""


@dataclass
class Ledger:
    """What instances hold. Belongs to one event loop; `version` grows with every change."""

    clock: Callable[[], float] = time.monotonic
    version: int = 0
    returns: int = 0
    """How often a process gave memory back."""
    returned_s: dict[str, float] = field(default_factory=dict)
    """By device, when a process gave something back last; drivers list it as free a moment later (04 §5).
    Forgotten by whoever has seen it."""
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _watchers: list[Callable[[], None]] = field(default_factory=list)

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` after every change."""
        self._watchers.append(changed)

    def promise(
        self,
        instance: Instance,
        placement: Placement,
        endpoints: Iterable[str],
        *,
        is_going: Callable[[Instance], bool],
        evict: Callable[[str], None],
    ) -> None:
        """Set memory aside for a start; again for the same instance replaces what was set aside.

        `endpoints` are servers of remote devices that it will be connected to; `evict` tells it to leave,
        given the cause.
        """
        self._entries[instance.name] = _Entry(instance, placement, is_going, evict, frozenset(endpoints))
        self._change()

    def release(self, instance: Instance, *, had_process: bool = True) -> None:
        """The instance holds nothing any more. Harmless where it held nothing."""
        entry = self._entries.get(instance.name)
        if entry is None or _alive(entry.survivors):
            return
        del self._entries[instance.name]
        if had_process:
            self._note_return(entry.placement)
        self._change()

    def outlived(self, instance: Instance, pids: tuple[int, ...]) -> None:
        """Processes of the instance are still there: what it held stays held until they are gone."""
        if (entry := self._entries.get(instance.name)) is not None:
            entry.survivors = pids

    def touch(self) -> None:
        """Something about a holder changed: its state, its leases."""
        self._change()

    def evict(self, name: str, cause: str) -> None:
        """Tell an instance to leave. REQUIRES: it is in the ledger."""
        self._entries[name].evict(cause)

    def residents(self, *, besides: Iterable[str] = ()) -> tuple[Resident, ...]:
        """Everybody who holds something, in the order in which they came."""
        for name in [n for n, e in self._entries.items() if e.survivors and not _alive(e.survivors)]:
            self._note_return(self._entries.pop(name).placement)
        left_out = frozenset(besides)
        now = self.clock()
        return tuple(_resident(entry, now) for name, entry in self._entries.items() if name not in left_out)

    def endpoints_held(self) -> frozenset[str]:
        """Servers that serve one of our processes, and must not be asked for their devices meanwhile."""
        return frozenset(name for entry in self._entries.values() for name in entry.endpoints)

    def endpoints_of(self, instance: Instance) -> frozenset[str]:
        """Servers that an instance is, or will be, connected to."""
        entry = self._entries.get(instance.name)
        return entry.endpoints if entry else frozenset()

    def _note_return(self, placement: Placement) -> None:
        self.returns += 1
        now = self.clock()
        self.returned_s |= dict.fromkeys(placement.needs_bytes, now)

    def _change(self) -> None:
        self.version += 1
        for changed in self._watchers:
            changed()


def _resident(entry: _Entry, now: float) -> Resident:
    instance, live = entry.instance, entry.instance.request.live
    return Resident(
        instance=instance.name,
        model=instance.request.id,
        replica=instance.replica,
        pool=instance.request.pool.name,
        holding=_holding(entry),
        bytes=entry.placement.needs_bytes,
        priority=live.priority,
        pinned=live.pin,
        load=live.load,
        leases=len(instance.leases),
        idle_s=0.0 if instance.leases else max(0.0, now - instance.idle_since_s),
        grows=entry.placement.grows_bytes,
        mapped=entry.placement.mapped_bytes,
        ready_s=instance.seconds_ready,
        start_s=(instance.result.load_s or 0.0) if instance.result else 0.0,
    )


def _holding(entry: _Entry) -> Holding:
    if entry.survivors or entry.instance.state in LEAVING or entry.is_going(entry.instance):
        return "leaving"
    return "resident" if entry.instance.state is State.READY else "promised"


def _alive(pids: Iterable[int]) -> bool:
    return any(psutil.pid_exists(pid) for pid in pids)
