"""What an engine itself said it would take, before it loaded anything.

Numbers are MiB as it prints them, rounded down.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeasuredRow:
    """One row of an engine's memory table. `device` is the engine's name, or `CPU` for host memory."""

    device: str
    buffer: str
    """Name of the row: the device, or a kind of host memory such as `Host` or `CPU_REPACK`."""
    weights_mib: int
    context_mib: int
    """Caches and recurrent states."""
    compute_mib: int
    free_mib: int | None = None
    """Free on the device before the launch; None for host memory."""

    @property
    def total_mib(self) -> int:
        """The whole row; each part was rounded down."""
        return self.weights_mib + self.context_mib + self.compute_mib


MeasuredTable = tuple[MeasuredRow, ...]


@dataclass(frozen=True)
class EngineChoice:
    """Settings that the engine's fit step put in place of asked ones, since those need more than is free."""

    table: MeasuredTable
    """With these settings."""
    context: int | None = None
    """Tokens of all slots, where it shortened them."""
    gpu_layers: int | None = None
    """Layers on devices, the output counted as one, where it took some away."""
    partial_layers: int = 0
    """Of those, layers whose experts are in host memory."""


@dataclass(frozen=True)
class Measurement:
    """The answer of one dry run."""

    asked: MeasuredTable
    """With the settings of the command line."""
    draft: MeasuredTable = ()
    """Of a drafter or an embedded head, which has a context of its own."""
    projector_mib: int | None = None
    choice: EngineChoice | None = None
    """None where the launch runs as asked."""
