"""Counters and histograms with labels: what is added up while the manager runs. One event loop; nothing
waits.

A count costs one look into a table. Tables are bounded: values of labels come from outside, and a metric
whose series grow without end takes down whoever stores them. What finds no room is added up under labels
`other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from framework.telemetry.exposition import Family, Sample

MOST_SERIES = 2000
"""Of one metric; of a histogram a tenth, since each of its series is a dozen lines."""
MOST_HISTOGRAMS = 200
OTHER = "other"


class Counter:
    """A sum for each combination of label values."""

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        self._name = name
        self._meaning = meaning
        self._labels = labels
        self._values: dict[tuple[str, ...], float] = {}

    def add(self, *values: str, amount: float = 1) -> None:
        """Add to the sum of these label values, given in the order of the labels."""
        sums = self._values
        if values not in sums and len(sums) >= MOST_SERIES:
            values = (OTHER,) * len(self._labels)
        sums[values] = sums.get(values, 0) + amount

    def family(self) -> Family:
        """The sums as they are now."""
        samples = (
            Sample(dict(zip(self._labels, values, strict=True)), value)
            for values, value in self._values.items()
        )
        return Family(self._name, "counter", self._meaning, tuple(samples))


class Histogram:
    """How often values up to each bound were seen, for each value of one label."""

    def __init__(self, name: str, meaning: str, label: str, bounds: Sequence[float]) -> None:
        self._name = name
        self._meaning = meaning
        self._label = label
        self._bounds = tuple(bounds)
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def observe(self, of: str, value: float) -> None:
        """Count one value in."""
        if of not in self._counts:
            if len(self._counts) >= MOST_HISTOGRAMS:
                of = OTHER
            self._counts.setdefault(of, [0] * (len(self._bounds) + 1))
        self._counts[of][bisect_left(self._bounds, value)] += 1
        self._sums[of] = self._sums.get(of, 0.0) + value

    def family(self) -> Family:
        """The counts as they are now."""
        return Family(self._name, "histogram", self._meaning, tuple(self._samples()))

    def _samples(self) -> Iterator[Sample]:
        edges = [*(f"{bound:g}" for bound in self._bounds), "+Inf"]
        for of, counts in self._counts.items():
            so_far = 0
            for edge, count in zip(edges, counts, strict=True):
                so_far += count
                yield Sample({self._label: of, "le": edge}, so_far, "_bucket")
            yield Sample({self._label: of}, self._sums[of], "_sum")
            yield Sample({self._label: of}, so_far, "_count")
