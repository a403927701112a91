"""The download process as a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TAKE_TOO_MUCH = """
from framework.models.hub.worker import MEMORY_LIMIT_BYTES, bound_memory

bound_memory()
try:
    bytearray(MEMORY_LIMIT_BYTES + 1)
except MemoryError:
    print("refused")
"""


def test_its_memory_is_bounded_whatever_a_hub_sends() -> None:
    root = Path(__file__).parents[3]
    ended = subprocess.run([sys.executable, "-c", TAKE_TOO_MUCH], cwd=root, capture_output=True, check=True)
    assert ended.stdout == b"refused\n"
