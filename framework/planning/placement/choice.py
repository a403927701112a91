"""What was decided about one launch, as the command line and the ledger need it. Pure values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from framework.values.plan import FitPlan, MemoryLine, Placement
from framework.values.reason import Reason


@dataclass(frozen=True)
class Choice:
    """A place for a launch: devices by the names everybody sees, and what goes there."""

    fit: FitPlan
    devices: tuple[str, ...] = ()
    """In the engine's order; none for host memory alone."""
    context: int = 0
    slots: int = 1
    gpu_layers: int = 0
    """On GPUs, the output counted as one."""
    all_layers: int = 0
    """Layers that there are, the output counted as one."""
    could_use_gpus: bool = False
    """There are GPUs in its reach, whether or not it got any."""
    cpu_experts: int = 0
    split: Literal["layer", "tensor"] = "layer"
    shares: tuple[int, ...] = ()
    """Layers, or parts of all tensors, of each device; empty for one device, or for equal parts."""
    cache_ram_mib: int | None = None
    """Limit of the prompt cache; None leaves the engine's own."""
    reasons: tuple[Reason, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left in host memory that could be on a GPU."""
        return not self.could_use_gpus or (self.gpu_layers >= self.all_layers and not self.cpu_experts)

    @property
    def placement(self) -> Placement:
        """As it is written into the ledger."""
        return Placement(
            devices=self.devices,
            child_names={name: name for name in self.devices},
            is_delegated=False,
            gpu_layers=None if self.devices and self.gpu_layers >= self.all_layers else self.gpu_layers,
            cpu_experts=self.cpu_experts,
            split=self.split,
            shares=tuple(map(float, self.shares)),
            needs_bytes=needs_of(self.fit, self.devices),
            grows_bytes=grows_of(self.fit),
            mapped_bytes=mapped_of(self.fit),
        )


def needs_of(fit: FitPlan, devices: Sequence[str]) -> dict[str, int]:
    """What a plan holds of each device from its start; what is only mapped is left out."""
    return at_least_something(_sums(fit, lambda line: line.is_needed), devices)


def at_least_something(needs: Mapping[str, int], devices: Sequence[str]) -> dict[str, int]:
    """Bytes by device in which every device is named that the process is given: it opens all of them, and has
    those to itself that serve one process at a time."""
    return {**needs, **{name: max(1, needs.get(name, 0)) for name in devices}}


def grows_of(fit: FitPlan) -> dict[str, int]:
    """What it may come to hold besides."""
    return _sums(fit, lambda line: line.grows)


def mapped_of(fit: FitPlan) -> dict[str, int]:
    """Pages of files that it reads in place."""
    return _sums(fit, lambda line: line.mapped)


def _sums(fit: FitPlan, counts: Callable[[MemoryLine], bool]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for line in fit.lines:
        if counts(line):
            found[line.device] += line.bytes
    return dict(found)
