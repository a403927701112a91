"""A compute graph as the engine builds and divides it, reduced to sizes (measured rules). Pure.

Operations with weights run where the weights are, the others near them. Consecutive operations of one device
are a part; what a part reads from elsewhere is copied into its device's buffer when the part begins. Filled
by the graph_* modules, asked by compute. A plan for many models spends most of its time here, so operations
are rows of plain columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from framework.planning.memory.graph_allocator import Results, peak_bytes, through_view

HOST_BUFFER = 0
# The engine divides a part that reads more than this from elsewhere.
MOST_COPIES = 30


class Kind(Enum):
    """What a row of the graph is."""

    RESULT = 0
    INPUT = 1
    """Written by the server before a run."""
    CACHE = 2
    """Memory outside of these buffers."""


class EngineGraph:
    """Operations in the order of execution, known by their numbers. Device 0 is host memory."""

    def __init__(self, devices: int = 1) -> None:
        self.devices = devices
        self.sizes: list[int] = []
        """Bytes of each."""
        self.sources: list[tuple[int, ...]] = []
        self.owners: list[int] = []
        """Whose memory the result is: its own number, unless it is a view."""
        self.overwrites: list[bool] = []
        self.wanted: list[int | None] = []
        """Where it has to run; None without weights."""
        self.kinds: list[Kind] = []
        self.spans: dict[int, int] = {}
        """Bytes between the first and the last that a view shows, where those in between are others'."""

    def append(
        self,
        size: int,
        sources: tuple[int, ...],
        device: int | None,
        overwrites: bool = False,
        owner: int = -1,
        kind: Kind = Kind.RESULT,
    ) -> int:
        """A row; `owner` -1 stands for itself. The functions below say what rows there are."""
        number = len(self.sizes)
        self.sizes.append(size)
        self.sources.append(sources)
        self.owners.append(number if owner < 0 else owner)
        self.overwrites.append(overwrites)
        self.wanted.append(device)
        self.kinds.append(kind)
        return number

    def input(self, size_bytes: int) -> int:
        """Something that the server writes before a run: tokens, positions, masks."""
        return self.append(size_bytes, (), HOST_BUFFER, kind=Kind.INPUT)

    def cache(self, size_bytes: int, device: int) -> int:
        """Memory outside of these buffers, of which only a copy for another device counts."""
        return self.append(size_bytes, (), device, kind=Kind.CACHE)

    def add(self, size_bytes: int, *sources: int, device: int | None = None, overwrites: bool = False) -> int:
        """A result. `device` is that of its weights, None for an operation without any."""
        return self.append(size_bytes, sources, device, overwrites)

    def view(self, source: int) -> int:
        """The memory of `source` in another shape."""
        return self.append(self.sizes[source], (source,), None, False, self.owners[source])

    def part(self, source: int, size_bytes: int, *, span: int = 0) -> int:
        """A piece of the memory of `source`. With gaps it spans more bytes than it has, and a copy keeps
        them.
        """
        number = self.append(size_bytes, (source,), None, False, self.owners[source])
        if span:
            self.spans[number] = span
        return number

    def use(self, *sources: int, device: int | None = None) -> None:
        """A reader without a result in these buffers, such as a write into a cache."""
        self.append(0, sources, device)

    def places(self) -> list[int]:
        """Device of every operation: as given, else a GPU before it, else a GPU behind it, else host
        memory.
        """
        places, owners, kinds = list(self.wanted), self.owners, self.kinds
        order = [n for n, owner in enumerate(owners) if owner == n and kinds[n] is Kind.RESULT]
        for numbers in (order, order[::-1]):
            current: int | None = None
            for number in numbers:
                place = places[number]
                if place is None:
                    places[number] = current
                else:
                    current = place or None
        return [places[owner] or HOST_BUFFER for owner in owners]

    def buffer_bytes(self) -> list[int]:
        """Compute buffer of each device."""
        return peak_bytes(_Divided(self).results, self.devices)


class _Divided:
    """The parts of a graph one after the other, with the copies between them."""

    def __init__(self, graph: EngineGraph) -> None:
        self.graph, self.places = graph, graph.places()
        self.results = Results()
        self.numbers = [-1] * len(graph.sizes)
        """Operation to result."""
        self.abroad = self._read_abroad() if graph.devices > 1 else frozenset()
        """What is read on another device than its own; views of it are copied each."""
        self.copies: dict[tuple[int, int], int] = {}
        kinds, owners, places = graph.kinds, graph.owners, self.places
        self._add_all(number for number, kind in enumerate(kinds) if kind is Kind.INPUT)
        part: list[int] = []
        device = HOST_BUFFER
        for number, kind in enumerate(kinds):
            if kind is Kind.INPUT:
                continue
            if places[number] != device and owners[number] == number and kind is not Kind.CACHE:
                self._add_part(device, part)
                part, device = [], places[number]
            part.append(number)
        self._add_part(device, part)

    def _read_abroad(self) -> frozenset[int]:
        places = self.places
        return frozenset(
            source
            for number, sources in enumerate(self.graph.sources)
            for source in sources
            if places[source] != places[number]
        )

    def _add_part(self, device: int, part: list[int]) -> None:
        """Views of other devices' memory first, then the operations with what they read from elsewhere."""
        places, sources, copies = self.places, self.graph.sources, self.copies
        own = [number for number in part if places[number] == device]
        if len(own) != len(part):
            self._add_all(number for number in part if places[number] != device)
        copied: list[int] = []
        start = 0
        for position, number in enumerate(own):
            for source in sources[number]:
                if places[source] == device or (source, device) in copies:
                    continue
                if len(copied) >= MOST_COPIES and position > start:
                    self._add_piece(device, own[start:position], copied)
                    copied, start = [], position
                if source not in copied:
                    copied.append(source)
        self._add_piece(device, own[start:], copied)

    def _add_piece(self, device: int, piece: list[int], copied: list[int]) -> None:
        """All copies are made before the first operation; an original stays until it has been copied."""
        graph, results, numbers = self.graph, self.results, self.numbers
        for source in copied:
            size = graph.spans.get(source) or graph.sizes[source]
            results.add(0, (numbers[source],), -1, False, self.places[source])
            self.copies[source, device] = results.add(size, (), -1, False, device)
        self._add_all(piece, device)

    def _add_all(self, piece: Iterable[int], device: int = -1) -> None:
        """Operations as they are. Where `device` is given, they read copies of what is elsewhere."""
        graph, places, numbers, copies = self.graph, self.places, self.numbers, self.copies
        sizes, sources, owners, kinds = graph.sizes, graph.sources, graph.owners, graph.kinds
        add, abroad = self.results.add, self.abroad
        for number in piece:
            owner = owners[number]
            if owner != number and number not in abroad:
                numbers[number] = through_view(numbers[owner])
                continue
            seen = [
                numbers[source] if device < 0 or places[source] == device else copies[source, device]
                for source in sources[number]
            ]
            numbers[number] = add(
                0 if kinds[number] is Kind.CACHE else sizes[number],
                tuple(seen),
                -1 if owner == number else numbers[owner],
                graph.overwrites[number],
                places[number],
            )
