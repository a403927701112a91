"""What waits to be written: bounded in number and bytes; of too much, the oldest is lost, and counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Pending(Generic[T]):
    """A queue with a bound. Not safe for threads by itself: its owner holds a lock."""

    def __init__(self, most: int, most_bytes: int, bytes_of: Callable[[T], int]) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes_of = bytes_of
        self._items: deque[T] = deque()
        self._bytes = 0
        self.lost = 0
        """Entries that had to go since this was last set to 0."""

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Add the newest one."""
        self._items.append(item)
        self._bytes += self._bytes_of(item)
        self._trim()

    def take(self, most: int, most_bytes: int) -> list[T]:
        """The oldest ones, out of the queue: so many, and of more than one so many bytes."""
        taken: list[T] = []
        room = most_bytes
        while self._items and len(taken) < most and (not taken or self._bytes_of(self._items[0]) <= room):
            taken.append(self._pop())
            room -= self._bytes_of(taken[-1])
        return taken

    def take_all(self) -> list[T]:
        """All of them, out of the queue."""
        taken, self._bytes = list(self._items), 0
        self._items.clear()
        return taken

    def put_back(self, items: Iterable[T]) -> None:
        """What was taken and could not be written, before everything that has come since."""
        oldest = list(items)
        self._items.extendleft(reversed(oldest))
        self._bytes += sum(map(self._bytes_of, oldest))
        self._trim()

    def _pop(self) -> T:
        item = self._items.popleft()
        self._bytes -= self._bytes_of(item)
        return item

    def _trim(self) -> None:
        while len(self._items) > self._most or (self._bytes > self._most_bytes and len(self._items) > 1):
            self._pop()
            self.lost += 1
