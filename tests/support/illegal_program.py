"""A real program whose first instruction no CPU knows, made without a compiler."""

from __future__ import annotations

import platform
import struct
from pathlib import Path

# Machine number of ELF, and an instruction that is defined to be illegal.
ILLEGAL = {"x86_64": (62, b"\x0f\x0b"), "aarch64": (183, b"\x00\x00\x00\x00")}
ADDRESS, HEADER_BYTES, SEGMENT_BYTES = 0x400000, 64, 56


def write_illegal_program(path: Path) -> Path:
    """An executable that the CPU ends with SIGILL, whatever it is asked for."""
    machine, code = ILLEGAL[platform.machine()]
    start = HEADER_BYTES + SEGMENT_BYTES
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        2,  # an executable
        machine,
        1,
        ADDRESS + start,
        HEADER_BYTES,
        0,
        0,
        HEADER_BYTES,
        SEGMENT_BYTES,
        1,
        0,
        0,
        0,
    )
    size = start + len(code)
    readable_executable = 5
    segment = struct.pack("<IIQQQQQQ", 1, readable_executable, 0, ADDRESS, ADDRESS, size, size, 0x1000)
    path.write_bytes(header + segment + code)
    path.chmod(0o755)
    return path
