"""One event of a stream, and what a flavour of the interface has to be able to say (12 §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from framework.nativeserver.core import Result
from framework.nativeserver.errors import ApiError


@dataclass(frozen=True)
class Event:
    """A server-sent event; `name` only where the flavour names its events."""

    data: Any
    name: str | None = None


class Flavour(Protocol):
    """The shape of answers of one route. One object serves one HTTP request and may keep its state."""

    sends_done: bool
    """Whether a good stream ends with `data: [DONE]`."""

    def answer(self, finals: Sequence[Result]) -> Any:
        """The whole answer of a request that isn't streamed; finals in task order."""
        ...

    def events(self, result: Result) -> list[Event]:
        """The events of one partial or final result of a stream."""
        ...

    def closing(self) -> list[Event]:
        """Events after every task ended well."""
        ...

    def error(self, error: ApiError) -> Event:
        """The event that tells an error in the middle of a stream."""
        ...
