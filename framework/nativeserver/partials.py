"""Results on their way to one reader: bounded by joining partials, ended when nobody answers (10 §1.6).

Called by nativeserver.bridge alone; readers see a Result like any other.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from framework.nativeserver.core import Result, TokenRecord

MOST_WAITING = 256
"""Partials of one task that wait for its reader one by one (10 §1.6)."""


class JoinedPartial:
    """Several partials as one: texts, tokens and records joined, everything else of the newest."""

    def __init__(self, first: Result) -> None:
        self._newest = first
        self._text = bytearray(first.text)
        self.tokens: list[int] = list(first.tokens)
        self.records: list[TokenRecord] = list(first.records)
        self.is_progress = first.is_progress

    def add(self, later: Result) -> None:
        """Take in the next partial of the same task."""
        self._newest = later
        self._text += later.text
        self.tokens += later.tokens
        self.records += later.records
        # A partial with text is none of progress, whatever it was joined with.
        self.is_progress = self.is_progress and later.is_progress

    @property
    def text(self) -> bytes:
        """Bytes of all of them."""
        return bytes(self._text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._newest, name)


@dataclass(frozen=True)
class LostTask:
    """The error result of a task whose engine is gone."""

    id: int
    index: int
    text: bytes = b"The server is shutting down"
    kind: str = "error"
    error: str = "unavailable"


class Mailbox:
    """Results that wait for one reader: any number of last ones, and a bounded number of partials a task."""

    def __init__(self) -> None:
        self._results: deque[Result | JoinedPartial] = deque()
        self._waiting: Counter[int] = Counter()
        """Partials by task."""
        self._joined: dict[int, JoinedPartial] = {}
        """The newest waiting partial of tasks that have too many."""

    def __len__(self) -> int:
        return len(self._results)

    def put(self, result: Result) -> None:
        """Behind everything that waits, or joined to the newest partial of its task."""
        if result.kind != "partial":
            self._results.append(result)
        elif result.id in self._joined:
            self._joined[result.id].add(result)
        elif self._waiting[result.id] < MOST_WAITING - 1:
            self._waiting[result.id] += 1
            self._results.append(result)
        else:
            joined = self._joined[result.id] = JoinedPartial(result)
            self._results.append(joined)

    def take(self) -> Result:
        """The oldest; IndexError when there is none."""
        result = self._results.popleft()
        if isinstance(result, JoinedPartial):
            del self._joined[result.id]
        elif result.kind == "partial":
            self._waiting[result.id] -= 1
        return cast("Result", result)

    def clear(self) -> None:
        """Forget all of them."""
        self._results.clear()
        self._waiting.clear()
        self._joined.clear()


def lost_tasks(ids: Sequence[int], indices: Sequence[int]) -> list[Result]:
    """An error for each task."""
    return [cast("Result", LostTask(task_id, index)) for task_id, index in zip(ids, indices, strict=True)]
