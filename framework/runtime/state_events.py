"""The events of one instance's states: told at once, or once it is known that they are worth telling.

A start that was refused is tried again for later requests. What it does until it comes further than the
refusal, or to another one, is nothing new, and would fill the event log. Called by runtime.instance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from framework.values.instance import State

Record = Callable[[str, Mapping[str, Any]], None]
"""Records an event of the kind `state`, given its message and its data."""
# How far a start comes that is refused.
BEFORE_PROCESS = frozenset({State.PENDING, State.FETCHING, State.PLANNING, State.FAILED})


class StateEvents:
    """Tells changes of state through `record`."""

    def __init__(self, record: Record) -> None:
        self.wait = False
        """Whether they are kept until `settle`, or until it comes further than a refusal."""
        self._record = record
        self._kept: list[tuple[str, Mapping[str, Any]]] = []

    def add(self, old: State, new: State, cause: str, about: Mapping[str, Any]) -> None:
        """A change of state."""
        if new not in BEFORE_PROCESS:
            self.settle(is_told=True)
        data = {**about, "from": str(old), "to": str(new), "cause": cause}
        event = (f"{old} -> {new}: {cause}", data)
        if self.wait:
            self._kept.append(event)
        else:
            self._record(*event)

    def settle(self, *, is_told: bool) -> None:
        """From here on they are told; those that were kept, too, or never."""
        kept, self._kept, self.wait = self._kept, [], False
        for event in kept if is_told else ():
            self._record(*event)
