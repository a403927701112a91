"""What is remembered of a start that came to nothing, so that it is not tried for ever (07 §4.7).

Kept by a replica; runtime.supervisor decides by it what a request, or a changed file, may try again.
"""

from __future__ import annotations

from dataclasses import dataclass

from framework.runtime.identity import FilesIdentity, files_identity
from framework.runtime.instance import Instance
from framework.values.instance import State

BEFORE_PROCESS = frozenset({State.FETCHING, State.PLANNING})


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

    def note(self, instance: Instance) -> None:
        """A start failed in the state that the instance is in."""
        self.reached, self.is_asked_for = instance.state, False
        self.files = files_identity(instance.request, instance.plan)

    @property
    def was_refused(self) -> bool:
        """It was found without a process, so looking again is cheap."""
        return self.reached in BEFORE_PROCESS
