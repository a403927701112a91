"""Pools on the terminal: what is on each device, who makes room next, who waits for what. For `status`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framework.commands.output import print_reason, print_table, say
from framework.values.units_text import counted, duration, size

SIZES = ("TOTAL", "USABLE", "PLANNED", "PROMISED", "MEASURED", "OTHERS", "FREE")
COLUMNS = ("POOL", "DEVICE", *SIZES, "LEAVES NEXT")


def print_pools(pools: list[dict[str, Any]]) -> None:
    """Every device of every pool, then the queue."""
    rows = [row for pool in pools for row in _rows(pool)]
    if rows:
        say("")
        print_table(COLUMNS, rows)
    for pool in pools:
        for waiting in pool["waiting"]:
            say(_told(waiting, pool["name"]), "yellow")
            print_reason(waiting["reason"], indent="  ")


def _rows(pool: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    leaving = next((_leaves(one) for one in pool["residents"] if one["next_to_evict"]), None)
    for number, device in enumerate(pool["devices"]):
        yield (
            pool["name"] if number == 0 else "",
            device["name"],
            size(device["total_bytes"]),
            size(device["usable_bytes"]),
            size(device["planned_bytes"]),
            size(device["promised_bytes"]),
            _known(device["measured_bytes"]),
            _known(device["foreign_bytes"]),
            size(device["free_bytes"]),
            leaving if number == 0 else "",
        )


def _leaves(resident: dict[str, Any]) -> str:
    return f"{resident['instance']} (for priority {resident['yields_to']} and above)"


def _known(count_bytes: int | None) -> str | None:
    return None if count_bytes is None else size(count_bytes)


def _told(waiting: dict[str, Any], pool: str) -> str:
    name = waiting["model"] + (f" replica {waiting['replica']}" if waiting["replica"] else "")
    # Measured times say nothing where nobody makes room.
    eta_s = None if waiting["reason"]["severity"] == "error" else waiting["eta_s"]
    left = "for how long is not known yet" if eta_s is None else f"about {duration(float(eta_s))} left"
    requests = counted(waiting["requests"], "request")
    waited = duration(float(round(waiting["waited_s"])))
    return (
        f"{name}: number {waiting['position']} in pool {pool}, with {requests}, waiting for {waited}; {left}"
    )
