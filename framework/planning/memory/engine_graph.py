"""A compute graph as the engine builds and divides it, reduced to sizes (measured rules). Pure.

Operations with weights run where the weights are, the others near them. Consecutive operations of one device
are a part; what a part reads from elsewhere is copied into its device's buffer when the part begins. Filled
by the graph_* modules, asked by compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from framework.planning.memory.graph_allocator import Results, peak_bytes

HOST_BUFFER = 0


class Operation(NamedTuple):
    """One operation, known by its number in the order of execution."""

    bytes: int
    sources: tuple[int, ...]
    owner: int
    """Whose memory the result is: its own number, unless it is a view."""
    overwrites: bool
    device: int | None
    """Where it has to run; None without weights."""
    is_input: bool = False
    is_cache: bool = False
    span: int = 0
    """Bytes between the first and the last that a view shows, where those in between are others'."""


class EngineGraph:
    """Operations in the order of execution. Device 0 is host memory."""

    def __init__(self, devices: int = 1) -> None:
        self.devices = devices
        self.operations: list[Operation] = []

    def input(self, size_bytes: int) -> int:
        """Something that the server writes before a run: tokens, positions, masks."""
        number = len(self.operations)
        self.operations.append(Operation(size_bytes, (), number, False, HOST_BUFFER, is_input=True))
        return number

    def cache(self, size_bytes: int, device: int) -> int:
        """Memory outside of these buffers, of which only a copy for another device counts."""
        number = len(self.operations)
        self.operations.append(Operation(size_bytes, (), number, False, device, is_cache=True))
        return number

    def add(self, size_bytes: int, *sources: int, device: int | None = None, overwrites: bool = False) -> int:
        """A result. `device` is that of its weights, None for an operation without any."""
        number = len(self.operations)
        self.operations.append(Operation(size_bytes, sources, number, overwrites, device))
        return number

    def view(self, source: int) -> int:
        """The memory of `source` in another shape."""
        return self.part(source, self.operations[source].bytes)

    def part(self, source: int, size_bytes: int, *, span: int = 0) -> int:
        """A piece of the memory of `source`. With gaps it spans more bytes than it has, and a copy keeps
        them.
        """
        number = len(self.operations)
        owner = self.operations[source].owner
        self.operations.append(Operation(size_bytes, (source,), owner, False, None, span=span))
        return number

    def use(self, *sources: int, device: int | None = None) -> None:
        """A reader without a result in these buffers, such as a write into a cache."""
        self.add(0, *sources, device=device)

    def places(self) -> list[int]:
        """Device of every operation: as given, else a GPU before it, else a GPU behind it, else host
        memory.
        """
        operations = self.operations
        places = [operation.device for operation in operations]
        order = [
            number
            for number, operation in enumerate(operations)
            if operation.owner == number and not (operation.is_input or operation.is_cache)
        ]
        for numbers in (order, order[::-1]):
            current: int | None = None
            for number in numbers:
                place = places[number]
                if place is None:
                    places[number] = current
                else:
                    current = place or None
        return [places[operation.owner] or HOST_BUFFER for operation in operations]

    def buffer_bytes(self) -> list[int]:
        """Compute buffer of each device."""
        return peak_bytes(_Divided(self.operations, self.places()).results, self.devices)


class _Divided:
    """The parts of a graph one after the other, with the copies between them."""

    def __init__(self, operations: Sequence[Operation], places: Sequence[int]) -> None:
        self.operations, self.places = operations, places
        self.results = Results()
        self.numbers = [-1] * len(operations)
        """Operation to result."""
        self.copies: dict[tuple[int, int], int] = {}
        for number, operation in enumerate(operations):
            if operation.is_input:
                self._append(number, ())
        part: list[int] = []
        device = HOST_BUFFER
        for number, operation in enumerate(operations):
            if operation.is_input:
                continue
            if places[number] != device and operation.owner == number and not operation.is_cache:
                self._add_part(device, part)
                part, device = [], places[number]
            part.append(number)
        self._add_part(device, part)

    def _add_part(self, device: int, part: list[int]) -> None:
        """Views of other devices' memory first, then the copies that the part reads, then its operations."""
        places, operations, numbers = self.places, self.operations, self.numbers
        own = [number for number in part if places[number] == device]
        if len(own) != len(part):
            for number in part:
                if places[number] != device:
                    self._append(number, tuple(numbers[source] for source in operations[number].sources))
        abroad = []
        for number in own:
            for source in operations[number].sources:
                if places[source] != device:
                    abroad.append(number)
                    if (source, device) not in self.copies:
                        self._copy(source, device)
        reading_abroad = set(abroad)
        for number in own:
            sources = operations[number].sources
            if number in reading_abroad:
                seen = tuple(self._seen_from(device, source) for source in sources)
            else:
                seen = tuple([numbers[source] for source in sources])
            self._append(number, seen)

    def _copy(self, source: int, device: int) -> None:
        """The original stays until it has been copied."""
        original = self.operations[source]
        self.results.add(0, (self.numbers[source],), -1, False, self.places[source])
        self.copies[source, device] = self.results.add(original.span or original.bytes, (), -1, False, device)

    def _seen_from(self, device: int, source: int) -> int:
        return self.numbers[source] if self.places[source] == device else self.copies[source, device]

    def _append(self, number: int, sources: tuple[int, ...]) -> None:
        operation = self.operations[number]
        owner = -1 if operation.owner == number else self.numbers[operation.owner]
        size = 0 if operation.is_cache else operation.bytes
        self.numbers[number] = self.results.add(
            size, sources, owner, operation.overwrites, self.places[number]
        )
