"""What is remembered of a start that came to nothing, so that it is not tried for ever (07 §4.7).

Kept by a replica; runtime.supervisor decides by it what a request, or a changed file, may try again. What
was refused without a process is cheap to try again, and may succeed although nobody tells us why. Such a
refusal stands as long as the world is seen to be the same, and no longer than clients are told to wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from framework.runtime.identity import FilesIdentity, files_identity
from framework.runtime.instance import Instance
from framework.runtime.ledger import Ledger
from framework.runtime.refusals import OF_MEMORY, RETRY_UNKNOWN_S
from framework.values.instance import State
from framework.values.pool import Resident
from framework.values.reason import Failure, Reason
from framework.values.request import ModelRequest

BEFORE_PROCESS = frozenset({State.FETCHING, State.PLANNING})
# Other programs take and give back some memory all the time; that makes no other refusal.
OF_OTHERS = frozenset({"budget_bytes", "foreign_bytes"})


@dataclass(frozen=True)
class World:
    """What a refusal depended on, as far as it is seen without looking at devices."""

    request: ModelRequest
    files: FilesIdentity
    returns: int
    """How often a process of ours gave memory back."""
    holders: tuple[tuple[str, bool, int, str], ...]
    """Who holds memory, and what keeps them from making room: instance, pin, priority, load."""


def world_of(request: ModelRequest, ledger: Ledger) -> World:
    """The world as a start of `request` finds it. Some stat calls."""
    return World(request, files_identity(request, None), ledger.returns, _holders(ledger.residents()))


def _holders(residents: Iterable[Resident]) -> tuple[tuple[str, bool, int, str], ...]:
    return tuple((one.instance, one.pinned, one.priority, one.load) for one in residents)


@dataclass
class FailureMemory:
    """The last start that failed; nothing after one that succeeded."""

    reached: State | None = None
    """How far it came."""
    files: FilesIdentity | None = None
    """Identity of the files then; the same ones fail the same way."""
    seen: FilesIdentity | None = None
    """Identity at the last look since (runtime.fleet)."""
    is_asked_for: bool = False
    """A request came since: another try is worth it."""
    told: Reason | None = None
    """Why it was refused, where that was told; the same refusal is not told again."""
    world: World | None = None
    """What that refusal depended on."""
    stands_until_s: float = 0.0
    """By a monotonic clock: until then it answers every request, if the world stays as it is."""

    def note(self, instance: Instance, failure: Failure, request: ModelRequest, ledger: Ledger) -> None:
        """A start failed in the state that the instance is in, while `request` was wanted."""
        self.reached, self.is_asked_for = instance.state, False
        self.files = files_identity(instance.request, instance.plan)
        self.told = failure.reason if self.was_refused else None
        self.world = world_of(request, ledger)
        # What may pass by itself has waited between its tries already.
        self.stands_until_s = 0.0 if failure.retryable else ledger.clock() + RETRY_UNKNOWN_S

    def is_known(self, instance: Instance, reason: Reason) -> bool:
        """Whether what is noted next is the refusal that was told last."""
        return self.told is not None and instance.state in BEFORE_PROCESS and _is_same(self.told, reason)

    def repeats(self, instance: Instance | None, request: ModelRequest, ledger: Ledger) -> bool:
        """Whether another start would end as that of `instance` did, as far as is known (07 §4.7)."""
        if instance is None or instance.state is not State.FAILED:
            return False
        if self.was_refused:
            return ledger.clock() < self.stands_until_s and world_of(request, ledger) == self.world
        return files_identity(request, instance.plan) == self.files

    def succeeded(self) -> None:
        """A start came to something."""
        self.reached = self.told = self.world = None

    def forget(self) -> None:
        """Another try is wanted, and what comes of it is told."""
        self.files = self.told = self.world = None

    @property
    def was_refused(self) -> bool:
        """It was found without a process, so looking again is cheap."""
        return self.reached in BEFORE_PROCESS


def _is_same(one: Reason, other: Reason) -> bool:
    if one.code in OF_MEMORY and one.code == other.code:
        return _own_part(one.evidence) == _own_part(other.evidence)
    return one == other


def _own_part(evidence: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in evidence.items() if name not in OF_OTHERS}
