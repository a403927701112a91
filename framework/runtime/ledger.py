"""Who holds memory of which device: promised from the plan on, until the process is gone.

The one truth about our own bytes (07 §12.4): several kinds of devices never list less as free when something
loads. Changed by runtime.admission and by whoever ends an instance, synchronously; read for decisions, pages
and the device probe, which must leave servers alone that one process at a time can use.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
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
    spare: Callable[[], None]
    survivors: tuple[psutil.Process, ...] = ()
    """Processes that outlived SIGKILL (07 §5.4)."""

    @property
    def held_bytes(self) -> Mapping[str, int]:
        """What it took of each device, as the engine said where it did, else as it was planned."""
        result = self.instance.result
        return {**self.placement.needs_bytes, **(result.allocated_bytes if result else {})}


@dataclass(frozen=True)
class Return:
    """Memory of a device that ended processes gave back, and when the last of it came."""

    bytes: int
    at_s: float


@dataclass
class Ledger:
    """What instances hold. Belongs to one event loop; `version` grows whenever somebody holds more, less or
    otherwise. Leases are no change: whoever relies on them looks again."""

    clock: Callable[[], float] = time.monotonic
    version: int = 0
    returns: int = 0
    """How often a process gave memory back."""
    loaded_s: float = -math.inf
    """When somebody became ready last: lists of before show its memory as free."""
    returned: dict[str, Return] = field(default_factory=dict)
    """By device; drivers list it as free a moment later (04 §5). Forgotten by whoever has seen it."""
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
        spare: Callable[[], None],
    ) -> None:
        """Set memory aside for a start; again for the same instance replaces what was set aside.

        `endpoints` are servers of remote devices that it will be connected to; `evict` tells it to leave,
        given the cause, `spare` that it need not.
        """
        self._entries[instance.name] = _Entry(
            instance, placement, is_going, evict, frozenset(endpoints), spare
        )
        self._change()

    def release(self, instance: Instance, *, had_process: bool = True) -> None:
        """The instance holds nothing any more. Harmless where it held nothing."""
        entry = self._entries.get(instance.name)
        if entry is None or _alive(entry.survivors):
            return
        del self._entries[instance.name]
        if had_process:
            self.came_back(entry.held_bytes)
        self._change()

    def became_ready(self, instance: Instance) -> None:
        """What was promised to the instance is taken by now."""
        if instance.name in self._entries:
            self.loaded_s = self.clock()
            self._change()

    def outlived(self, instance: Instance, pids: Iterable[int]) -> None:
        """Processes of the instance are still there: what it held stays held until they are gone."""
        if (entry := self._entries.get(instance.name)) is not None:
            entry.survivors = tuple(process for pid in pids if (process := _process(pid)) is not None)
            self._change()

    def prune(self) -> None:
        """Forget those whose last processes are gone by now."""
        for name in [n for n, e in self._entries.items() if e.survivors and not _alive(e.survivors)]:
            self.came_back(self._entries.pop(name).held_bytes)
            self._change()

    def touch(self) -> None:
        """Something about a holder changed: its state, its limits."""
        self._change()

    def holds(self, instance: Instance) -> bool:
        """Whether memory is set aside for an instance."""
        return instance.name in self._entries

    def evict(self, name: str, cause: str) -> None:
        """Tell an instance to leave. REQUIRES: it is in the ledger."""
        self._entries[name].evict(cause)

    def spare(self, name: str) -> None:
        """An instance that was told to leave need not any more; it may be too late."""
        if name in self._entries:
            self._entries[name].spare()

    def residents(self, *, besides: Iterable[str] = ()) -> tuple[Resident, ...]:
        """Everybody who holds something, in the order in which they came."""
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

    def came_back(self, held_bytes: Mapping[str, int]) -> None:
        """A process that is in no ledger gave memory back: one of an earlier manager."""
        self.returns += 1
        for device, size in held_bytes.items():
            before = self.returned.get(device)
            self.returned[device] = Return(size + (before.bytes if before else 0), self.clock())

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
    if entry.survivors:
        return "stuck"
    if entry.instance.state in LEAVING or entry.is_going(entry.instance):
        return "leaving"
    return "resident" if entry.instance.state is State.READY else "promised"


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _alive(processes: Iterable[psutil.Process]) -> bool:
    """Whether one of them still holds something. Another process with its number is not it; a dead one that
    nobody waits for holds nothing."""
    for process in processes:
        try:
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                return True
        except psutil.Error:
            continue
    return False
