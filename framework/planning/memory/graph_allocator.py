"""Peak of a compute buffer: the engine's graph allocator, replayed over sizes alone. Pure.

The engine gives every result of a graph a place in one buffer per device. A place is free again after its
last reader, some operations write over what they read, and the smallest gap that fits is taken. A buffer is
as large as the highest address ever given away, so gaps that nothing fits into count: that is why no sum of
sizes gives the engine's number, and why this replay does. Called by engine_graph.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

ALIGNMENT_BYTES = 64


@dataclass
class Results:
    """Results in the order of execution, as columns of a table; a source is the number of an earlier row.

    A row of 0 bytes has no place: it is a reader, such as a write into a cache. A source that is read through
    a view, which needs no row of its own, is given as `through_view(number)`.
    """

    sizes: list[int] = field(default_factory=list)
    sources: list[tuple[int, ...]] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    """Whose memory a row shows: its own number, unless it is a view."""
    overwrites: list[bool] = field(default_factory=list)
    """Whether the operation can write over a source."""
    buffers: list[int] = field(default_factory=list)

    def add(self, size: int, sources: tuple[int, ...], owner: int, overwrites: bool, buffer: int) -> int:
        """Append a row; `owner` -1 stands for itself."""
        number = len(self.sizes)
        self.sizes.append(-(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES)
        self.sources.append(sources)
        self.owners.append(number if owner < 0 else owner)
        self.overwrites.append(overwrites)
        self.buffers.append(buffer)
        return number


def through_view(number: int) -> int:
    """A source that is read through a view of it; the inverse of itself."""
    return -1 - number


def peak_bytes(results: Results, buffers: int) -> list[int]:
    """Size of each of `buffers` buffers."""
    return _Replay(results, buffers).run()


class _Replay:
    def __init__(self, results: Results, buffers: int) -> None:
        count = len(results.sizes)
        self.sizes, self.owners, self.buffers = results.sizes, results.owners, results.buffers
        self.sources, self.overwrites = results.sources, results.overwrites
        self.readers = [0] * count
        self.views = [0] * count
        self.address = [-1] * count
        self.spaces = [_Space() for _ in range(buffers)]
        for number, owner in enumerate(self.owners):
            if owner != number:
                self.views[owner] += 1
            for source in self.sources[number]:
                self.readers[source if source >= 0 else -1 - source] += 1

    def run(self) -> list[int]:
        sizes, owners, address, readers = self.sizes, self.owners, self.address, self.readers
        views, overwrites, buffers, spaces = self.views, self.overwrites, self.buffers, self.spaces
        for number, sources in enumerate(self.sources):
            size = sizes[number]
            if size and owners[number] == number and not (overwrites[number] and self._overwrite(number)):
                address[number] = spaces[buffers[number]].take(size)
            for given in sources:
                source = given if given >= 0 else -1 - given
                readers[source] -= 1
                if not readers[source] and not views[source]:
                    self._leave(source)
        return [space.peak for space in spaces]

    def _overwrite(self, number: int) -> bool:
        """Take the place of a source that nobody else reads. What is read through a view stays."""
        size, buffer = self.sizes[number], self.buffers[number]
        for source in self.sources[number]:
            if source < 0:
                continue
            fits = self.address[source] >= 0 and self.sizes[source] == size and self.buffers[source] == buffer
            if fits and self.readers[source] == 1 and not self.views[source]:
                self.address[number], self.address[source] = self.address[source], -1
                return True
        return False

    def _leave(self, source: int) -> None:
        """Nobody reads `source` or a view of it any more. A view's place is free with its owner's."""
        owner = self.owners[source]
        if owner != source:
            self.views[owner] -= 1
            if self.views[owner] or self.readers[owner]:
                return
        if self.address[owner] >= 0:
            self.spaces[self.buffers[owner]].give_back(self.address[owner], self.sizes[owner])
            self.address[owner] = -1


class _Space:
    """Addresses of one buffer. Gaps are sorted and never touch; from `end` on everything is free."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.end = 0
        self.peak = 0

    def take(self, size: int) -> int:
        best, best_size = -1, 0
        for gap, start in enumerate(self.starts):
            gap_size = self.ends[gap] - start
            if gap_size >= size and (best < 0 or gap_size <= best_size):  # of equal ones, the last
                best, best_size = gap, gap_size
        if best < 0:
            start, self.end = self.end, self.end + size
            self.peak = max(self.peak, self.end)
            return start
        start = self.starts[best]
        if best_size == size:
            del self.starts[best], self.ends[best]
        else:
            self.starts[best] += size
        return start

    def give_back(self, start: int, size: int) -> None:
        end = start + size
        at = bisect_left(self.starts, start)
        if at and self.ends[at - 1] == start:
            at -= 1
            start = self.starts.pop(at)
            del self.ends[at]
        if at < len(self.starts) and self.starts[at] == end:
            del self.starts[at]
            end = self.ends.pop(at)
        if end == self.end:
            self.end = start
        else:
            self.starts.insert(at, start)
            self.ends.insert(at, end)
