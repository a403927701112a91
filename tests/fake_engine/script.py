"""What a fake engine is told to do, and the record of what it was asked.

Read once per start from the JSON file named by FAKE_SCRIPT and, over it, from variables `FAKE_<FIELD>` with
JSON values. Beside the file lie `<file>.starts` and `<file>.requests`, one JSON object a line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

HelpEra = Literal["new", "old", "empty", "fails", "hangs"]


@dataclass(frozen=True)
class Script:
    """What this engine does. Without arguments it is a healthy build b10068 that answers at once."""

    load_s: float = 0.0
    """Seconds of 503 before the server is healthy; negative: for ever."""
    exit_code: int | None = None
    exit_signal: str | None = None
    """End with this code, or by killing itself with this signal, `exit_after_s` seconds after the start."""
    exit_after_s: float = 0.0
    faulty_starts: int | None = None
    """The endings above happen only in the first so many starts; None: in all."""
    stderr: tuple[str, ...] = ()
    """Lines printed at the start, after the one that names the model."""
    flood_lines: int = 0
    flood_line_bytes: int = 200
    ignore_sigterm: bool = False
    grandchild: bool = False
    """Leave a process behind that inherits the listening socket and the output pipe."""
    hang: tuple[str, ...] = ()
    """Paths that are accepted and never answered."""
    die_at_request: int | None = None
    """SIGKILL itself in the middle of this generation request, counted from 1."""
    port_outlives_s: float = 0.0
    """How long before that the request's connection is closed already, while the port takes new ones."""
    cut_at_token: int | None = None
    """Drop the connection after so many streamed tokens."""
    fail_status: int | None = None
    """Answer generation requests with this status and an error object."""
    model_path: str | None = None
    """What `/props` names instead of the model on the command line."""
    context: int | None = None
    """Tokens per slot that `/props` reports instead of what was asked."""
    reject_flags: tuple[str, ...] = ()
    """Flags that this build does not know."""
    help: HelpEra = "new"
    """`new`: b10068; `old`: before the renames of the speculation flags; `fails`: exit status 1."""
    version: str = "version: 1 (571d0d5)\nbuilt with GNU 11.4.0 for Linux x86_64"
    devices: tuple[str, ...] = ()
    """Lines of `--list-devices` below the heading, such as `Vulkan0: llvmpipe (2048 MiB, 2048 MiB free)`."""
    tokens: int = 8
    token_interval_s: float = 0.0
    first_token_s: float = 0.0
    """Time between the headers and the first token."""

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Script:
        """The script in force. An unknown name ends the program: a typo must not look like a healthy run."""
        values: dict[str, Any] = {}
        if path := environ.get("FAKE_SCRIPT"):
            values.update(json.loads(Path(path).read_text(encoding="utf-8")))
        for name, value in environ.items():
            if name.startswith("FAKE_") and name != "FAKE_SCRIPT":
                values[name.removeprefix("FAKE_").lower()] = json.loads(value)
        if unknown := values.keys() - {item.name for item in fields(cls)}:
            raise SystemExit(f"fake engine: no such fault: {', '.join(sorted(unknown))}")
        frozen: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
        return cls(**frozen)


def record(kind: Literal["starts", "requests"], value: Mapping[str, Any]) -> int:
    """Append a line to the record of that kind; returns its number of lines (1 without a script file)."""
    script = os.environ.get("FAKE_SCRIPT")
    if script is None:
        return 1
    path = Path(f"{script}.{kind}")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")
    return len(path.read_text(encoding="utf-8").splitlines())
