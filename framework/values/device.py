"""A memory that models can live in, named as the engine names it (04 §2.5, 13 §2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

HOST_NAME = "CPU"
"""What host memory is called as a device."""


@dataclass(frozen=True)
class Device:
    """One device. Host memory is `CPU`. Bytes are what the engine (or the system, for `CPU`) reports.

    `name` is unique on this machine and the same in every pool, plan and page; a process that is shown only
    some devices may count them anew (`Placement.child_names`).
    """

    name: str
    kind: Literal["gpu", "cpu", "rpc"]
    total_bytes: int
    free_bytes: int
    description: str = ""
    pool: str | None = None
    endpoint: str = ""
    """`host:port` of a remote one. Its server serves one process at a time and is not asked meanwhile."""
    uuid: str = ""
    bus_id: str = ""
    is_unified: bool = False
    """Its memory is host memory, so that both are limited by what the host has free."""
    same_as: str = ""
    """Another device of the list that is the same card, and is used instead unless a pool names this one."""
    architecture: str = ""
    utilisation: float | None = None
    """Share of the last second in which it worked, 0 to 1; None where nobody can tell."""
    used_by_pid: Mapping[int, int] = field(default_factory=dict)
    """Bytes of each process that the driver knows of, ours and others; empty where it cannot tell."""

    @property
    def is_exclusive(self) -> bool:
        """Whether only one process at a time can use it."""
        return self.kind == "rpc"
