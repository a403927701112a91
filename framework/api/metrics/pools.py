"""Memory of devices: what there is, what is planned, what is really used, and by which model. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from framework.api.metrics.labels import counter, gauge
from framework.telemetry.exposition import Family, Sample
from framework.values.pool import DeviceUse, PoolView

DEVICE_BYTES = (
    ("total", "Memory of the device."),
    ("free", "Memory that nobody uses, as last listed."),
    ("usable", "Memory that may be planned while nothing of ours is there."),
    ("planned", "Memory that plans of loaded models hold."),
    ("promised", "Memory that starts under way will hold."),
    ("measured", "Memory that our processes really hold."),
    ("foreign", "Memory that other programs hold."),
)


def devices(pools: tuple[PoolView, ...]) -> Iterator[Family]:
    """Each device of each pool; what nobody can tell has no sample."""
    uses = [(pool.limits.name, use) for pool in pools for use in pool.devices]
    for name, meaning in DEVICE_BYTES:
        values = ((pool, use, getattr(use, f"{name}_bytes")) for pool, use in uses)
        yield gauge(
            f"device_{name}_bytes",
            meaning,
            (Sample(_of(pool, use), value) for pool, use, value in values if value is not None),
        )
    yield gauge(
        "device_utilisation_ratio",
        "Share of the time in which the device works, as the driver says.",
        (Sample(_of(pool, use), use.utilisation) for pool, use in uses if use.utilisation is not None),
    )


def holders(pools: tuple[PoolView, ...]) -> Iterator[Family]:
    """Who holds memory, who waits for it, and how often somebody had to leave."""
    yield gauge(
        "model_planned_bytes",
        "Memory that is set aside for a replica.",
        (
            Sample(
                {"model": one.model, "replica": str(one.replica), "device": device, "holding": one.holding}, n
            )
            for pool in pools
            for one in pool.residents
            for device, n in one.bytes.items()
        ),
    )
    yield gauge(
        "pool_waiting",
        "Replicas that wait for memory of the pool.",
        (Sample({"pool": pool.limits.name}, len(pool.waiting)) for pool in pools),
    )
    yield counter(
        "evictions_total",
        "Instances that made room for others.",
        (Sample({"pool": pool.limits.name}, pool.evictions) for pool in pools),
    )


def _of(pool: str, use: DeviceUse) -> dict[str, str]:
    return {"pool": pool, "device": use.name, "kind": use.kind}
