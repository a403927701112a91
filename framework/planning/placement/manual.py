"""What manual mode can and cannot do with what it is told (04 §11, §13). Pure. Called by planning.launch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from framework.values.reason import Reason


def usable_ratio(asked: Sequence[object] | None) -> tuple[float, ...]:
    """Shares as the engine can take them: what is no finite number above 0 counts as 0 (04 §11.3)."""
    try:
        numbers = [float(share) for share in asked or ()]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ()
    return tuple(share if math.isfinite(share) and share > 0 else 0.0 for share in numbers)


def experts_flag(requested: int, moe_layers: int, leading_dense: int) -> int | None:
    """The value of `--n-cpu-moe`, which counts from the very first layer, dense ones included (04 §13.2)."""
    if requested <= 0 or moe_layers <= 0:
        return None
    return leading_dense + min(requested, moe_layers)


def granted_ratio(asked: Sequence[float], gpus: int) -> tuple[tuple[float, ...], Reason | None]:
    """The shares for so many GPUs, and why they are left out.

    One GPU needs none. An engine fills a short list with zeros and dies of a long one.
    """
    ratio = usable_ratio(asked)
    if not ratio or gpus == 1:
        return (), None
    if gpus and (len(ratio) != gpus or not sum(ratio)):
        return (), Reason(
            "tensor_split_dropped",
            f"placement.tensor_split has {len(ratio)} shares and {gpus} GPUs are used; the engine divides the"
            " model by itself.",
            "Give one share for each GPU, at least one of them above 0.",
            "warning",
            {"asked": list(asked), "gpus": gpus},
        )
    return ratio, None


def granted_experts(
    requested: int, moe_layers: int | None, leading_dense: int
) -> tuple[int | None, Reason | None]:
    """The flag for so many layers' experts, and why it says less. `moe_layers` None is not known."""
    if requested <= 0:
        return None, None
    if moe_layers is None:
        return requested, None
    flag = experts_flag(requested, moe_layers, leading_dense)
    if requested <= moe_layers:
        return flag, None
    there = f"has {moe_layers} layers with experts" if moe_layers else "has no experts"
    return flag, Reason(
        "cpu_experts_clamped",
        f"placement.cpu_experts asks for {requested} layers and the model {there}.",
        f"Set placement.cpu_experts to {moe_layers} or less." if moe_layers else "Remove it.",
        "warning",
        {"asked": requested, "granted": min(requested, moe_layers)},
    )
