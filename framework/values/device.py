"""A memory that models can live in, named as the engine names it (04 §2.5, 13 §2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HOST_NAME = "CPU"
"""What host memory is called as a device."""


@dataclass(frozen=True)
class Device:
    """One device. Host memory is `CPU`. Bytes are what the engine (or the system, for `CPU`) reports."""

    name: str
    kind: Literal["gpu", "cpu", "rpc"]
    total_bytes: int
    free_bytes: int
    description: str = ""
    pool: str | None = None
