"""Small programs that stand at the place of an engine, and the values that describe them."""

from __future__ import annotations

from pathlib import Path

from framework.engines.discovery import describe_binary
from framework.values.engine import EngineBinary


def write_program(path: Path, body: str = "exit 0", *, mode: int = 0o755) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(mode)
    return path


def program(folder: Path, body: str = "exit 0") -> EngineBinary:
    """A script named llama-server, described as discovery would."""
    return describe_binary(write_program(folder / "llama-server", body), "manifest")
