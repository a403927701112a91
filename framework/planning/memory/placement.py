"""Which device holds which layer, as the engine decides it. Pure.

The engine puts the last layers and the output on the GPUs and keeps the first ones in host memory. With
several GPUs each gets a run of layers, by its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from framework.planning.memory.settings import GpuBudget, Offload

HOST = "CPU"


@dataclass(frozen=True)
class Placement:
    """Device names by layer, and that of the output."""

    layers: tuple[str, ...]
    output: str
    cpu_experts: int = 0
    """So many first layers keep their experts in host memory."""

    def device(self, layer: int) -> str:
        """The device of a layer; what is past the last one goes with the output."""
        return self.layers[layer] if layer < len(self.layers) else self.output

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices that hold something, in the engine's order; host memory, which always does, comes first."""
        used = dict.fromkeys((*self.layers, self.output))
        return (HOST, *(name for name in used if name != HOST))


def place(n_layers: int, offload: Offload, gpus: Sequence[GpuBudget]) -> Placement:
    """Places of `n_layers` layers. Without GPUs everything is in host memory."""
    wanted = n_layers + 1 if offload.gpu_layers is None else offload.gpu_layers
    on_gpu = min(wanted, n_layers + 1) if gpus else 0
    if on_gpu <= 0:
        return Placement((HOST,) * n_layers, HOST, offload.cpu_experts)
    first = n_layers + 1 - on_gpu
    bounds = _bounds(offload.split, gpus)

    def device(layer: int) -> str:
        if layer < first:
            return HOST
        share = (layer - first) / on_gpu
        chosen = sum(bound <= share for bound in bounds)
        return gpus[min(chosen, len(gpus) - 1)].name

    return Placement(tuple(map(device, range(n_layers))), device(n_layers), offload.cpu_experts)


def _bounds(split: Sequence[float], gpus: Sequence[GpuBudget]) -> list[float]:
    """Upper end of each GPU's share, between 0 and 1."""
    shares = [*split, *(0.0 for _ in gpus)][: len(gpus)]
    if not sum(shares):
        shares = [float(gpu.free_bytes) for gpu in gpus]
    total = sum(shares)
    if not total:
        shares, total = [1.0] * len(gpus), float(len(gpus))
    # Summed before they are divided, as the engine does it: whole layers then end where they should.
    return [end / total for end in accumulate(shares)]
