"""A `[server]` key that a flag or a variable sets over the manifest (01 §2.9)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Override:
    """What was written, and where: `--listen` or `PADDOCK_LISTEN`."""

    text: str
    origin: str
