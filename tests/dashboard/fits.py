"""Memory plans to draw: host memory alone, two GPUs of which one is too full, three GPUs, nothing planned."""

from __future__ import annotations

from framework.values.plan import Basis, FitPlan, MemoryLine, Remedy
from tests.dashboard.samples import GIB, MIB

REMEDIES = (
    Remedy(
        "cache_type",
        "q8_0",
        1920 * MIB,
        True,
        "Store the cache as q8_0: 1.9 GiB less; 8.5 bits a number instead of 16 cost some accuracy.",
    ),
    Remedy(
        "slots",
        1,
        256 * MIB,
        False,
        "Use 1 slot instead of 4: 256.0 MiB less; further requests wait until one is free.",
    ),
)


def line(
    device: str,
    label: str,
    size: int,
    basis: Basis = "computed",
    *,
    mapped: bool = False,
    grows: bool = False,
) -> MemoryLine:
    """A line of a plan."""
    return MemoryLine(device, label, size, basis, mapped, grows)


def fit_of(*lines: MemoryLine, fits: bool | None = True, **budgets: int) -> FitPlan:
    """A plan of these lines."""
    totals: dict[str, int] = {}
    for one in lines:
        totals[one.device] = totals.get(one.device, 0) + one.bytes
    return FitPlan(lines, budgets, totals, fits, context=8192, slots=4)


HOST = (
    line("CPU", "weights", 92 * MIB, mapped=True),
    line("CPU", "kv", 180 * MIB),
    line("CPU", "compute", 22 * MIB),
    line("CPU", "output", 768 * 1024),
    line("CPU", "prompt_cache", 8 * GIB, "assumed", grows=True),
)
ON_HOST = fit_of(*HOST, CPU=5 * GIB)


def _gpu(name: str, weights: int, cache: int) -> tuple[MemoryLine, ...]:
    return (
        line(name, "weights", weights, "measured"),
        line(name, "kv", cache),
        line(name, "compute", 560 * MIB, "measured"),
        line(name, "runtime", 320 * MIB, "assumed"),
    )


ON_TWO = FitPlan(
    **{
        **vars(
            fit_of(
                *_gpu("CUDA0", 9 * GIB, 3 * GIB),
                *_gpu("CUDA1", 5 * GIB, 2 * GIB),
                *HOST,
                fits=False,
                CUDA0=11 * GIB,
                CUDA1=11 * GIB,
                CPU=40 * GIB,
            )
        ),
        "remedies": REMEDIES,
        "cache_types": ("f16", "q8_0"),
        "gpu_layers": 48,
        "cpu_experts": 4,
    }
)
ON_THREE = fit_of(
    *_gpu("CUDA0", 9 * GIB, 3 * GIB),
    *_gpu("Vulkan0", 5 * GIB, 2 * GIB),
    *_gpu("RPC0", 5 * GIB, 2 * GIB),
    CUDA0=22 * GIB,
    Vulkan0=7 * GIB,
    RPC0=7 * GIB,
)


def _said(name: str, weights: int, cache: int, compute: int) -> tuple[MemoryLine, ...]:
    return (
        line(name, "weights", weights, "measured"),
        line(name, "kv", cache, "measured"),
        line(name, "compute", compute, "measured"),
    )


SAID_OF_TWO = (
    *_said("CUDA0", 9 * GIB, 3 * GIB, 570 * MIB),
    *_said("CUDA1", 6 * GIB, 2 * GIB, 560 * MIB),
    line("CPU", "weights", 92 * MIB, "measured", mapped=True),
    *_said("CPU", 0, 180 * MIB, 22 * MIB)[1:],
)
"""What the engine of `ON_TWO` allocated: on CUDA1 more than was planned."""
