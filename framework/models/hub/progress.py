"""From notes of a download process to the progress that people see: never backwards, with the time left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from framework.models.hub.wire import Note
from framework.values.instance import LoadProgress

# Long enough to smooth a bursty line, short enough to follow a change of it.
WINDOW_S = 20.0
LEAST_S = 1.0
FRACTION_DIGITS = 4


class FetchProgress:
    """The progress of one fetch over all its files."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._samples: deque[tuple[float, int]] = deque()
        self._best = 0

    def of(self, note: Note) -> LoadProgress:
        """Progress after a note."""
        self._best = max(self._best, note.loaded_bytes)
        total = note.total_bytes
        loaded = min(self._best, total) if total else self._best
        fraction = round(loaded / total, FRACTION_DIGITS) if total else 0.0
        return LoadProgress("fetching", loaded, total, fraction, note.file, self._eta_s(loaded, total))

    def _eta_s(self, loaded: int, total: int) -> float | None:
        now_s = self._monotonic_s()
        self._samples.append((now_s, loaded))
        while len(self._samples) > 2 and self._samples[1][0] < now_s - WINDOW_S:
            self._samples.popleft()
        began_s, before = self._samples[0]
        if now_s - began_s < LEAST_S or loaded <= before or not total:
            return None
        return round((total - loaded) * (now_s - began_s) / (loaded - before), 1)
