"""Where the native engine is: a script beside the interpreter, and the compiled core behind it (06 §2.8).

Called by discovery. Looks at files only; nothing is imported.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

SCRIPT = "paddock-native-server"
CORE_PACKAGE = "paddock_native"
CORE_MODULE = "_core"


@dataclass(frozen=True)
class NativeServer:
    """The script that is executed, and the compiled core that decides what it can do; None: not installed."""

    script: Path
    core: Path | None


def native_server() -> NativeServer:
    """The native engine of this interpreter."""
    return NativeServer(Path(sysconfig.get_path("scripts")) / SCRIPT, _core())


def _core() -> Path | None:
    package = find_spec(CORE_PACKAGE)
    folders = (package.submodule_search_locations or ()) if package is not None else ()
    files = (Path(folder) / f"{CORE_MODULE}{suffix}" for folder in folders for suffix in EXTENSION_SUFFIXES)
    return next((file for file in files if file.is_file()), None)
