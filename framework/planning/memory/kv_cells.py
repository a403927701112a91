"""How many cells a cache has, and in how many streams (03 §3.2, §5.4). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from framework.planning.memory.settings import CacheSettings, padded


@dataclass(frozen=True)
class CellLayout:
    """Cells of full layers; each stream has as many."""

    slots: int
    streams: int
    cells_per_stream: int

    @property
    def cells(self) -> int:
        """Of all streams."""
        return self.streams * self.cells_per_stream


def cell_layout(n_ctx: int, slots: int, *, unified: bool) -> CellLayout:
    """The layout for a context of `n_ctx` tokens; no cells for none."""
    slots = max(1, slots)
    streams = 1 if unified else slots
    context = padded(n_ctx) if n_ctx > 0 else 0
    return CellLayout(slots, streams, context if unified else padded(context // slots))


def window_cells(layout: CellLayout, window: int, settings: CacheSettings) -> int:
    """Cells per stream of a windowed layer: the window of each sequence, and room for one micro-batch."""
    if settings.swa_full:
        return layout.cells_per_stream
    sequences = layout.slots // layout.streams
    limit = max(0, window * sequences + settings.ubatch)
    return min(layout.cells_per_stream, padded(limit))
