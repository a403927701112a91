"""The files that a command line names, before anything listens or loads. Called by process."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framework.nativeserver.flags.values import shown
from framework.nativeserver.load_failed import LoadFailed

MAGIC = b"GGUF"
LONGEST_PATH = 4096


def check_files(engine: Mapping[str, Any]) -> None:
    """Raises LoadFailed for a model or an adapter that is no GGUF file, with what it is instead.

    A draft model is left out: without it the server drafts nothing, and serves.
    """
    if fault := _fault(engine["model_path"]):
        path = shown(engine["model_path"], LONGEST_PATH)
        raise LoadFailed("model-open", f"cannot open model {path}: {fault}")
    for path, _scale in engine.get("loras", ()):
        if fault := _fault(path):
            raise LoadFailed("lora", f"failed to load lora adapter {shown(path, LONGEST_PATH)}: {fault}")


def _fault(path: str) -> str:
    """Why the file can't be one of GGUF; empty for what may be, pipes and devices included."""
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            return f"it is a folder; name the file in it{_found_in(path)}"
        if not stat.S_ISREG(mode):
            return ""
        with Path(path).open("rb") as file:
            start = file.read(len(MAGIC))
    except FileNotFoundError:
        return "there is no such file"
    except OSError as error:
        return error.strerror or str(error)
    if start == MAGIC:
        return ""
    found = f"begins with {shown(start.decode('latin-1'))}" if start else "is empty"
    return f"it is no GGUF file, which would begin with '{MAGIC.decode()}': it {found}"


def _found_in(folder: str) -> str:
    """A file of the folder that could be meant."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".gguf"))
    except OSError:
        return ""
    return f", such as {shown(names[0])}" if names else ", which has no .gguf file"
