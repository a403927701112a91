"""A wall clock of one process that can be set, by a small library in front of the system's.

Time namespaces move monotonic clocks only, and the machine's own clock belongs to everybody. The usual
library for this, libfaketime, also takes over sleeps, timers and locks, which a real jump does not touch.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("wall_clock.c")


class WallClock:
    """Compiled into a folder; processes started with `environment` go by it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        library, self._file = folder / "wall_clock.so", folder / "ahead"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(SOURCE)], check=True
        )
        self._file.write_bytes(struct.pack("q", 0))
        self.environment: Mapping[str, str] = {"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(self._file)}

    def set_ahead(self, seconds: int) -> None:
        """So far ahead of the true time, or behind it."""
        with self._file.open("r+b", buffering=0) as file:
            file.write(struct.pack("q", seconds))
