"""What kind of llama.cpp build an entry point belongs to, told by the libraries beside it (06 §3).

Called by discovery. Reads at most 256 bytes of the entry and one directory listing; never raises.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

# 06 §3.1: a wrapper script says where it goes in its first lines; a binary needs only its magic.
HEAD_BYTES = 256
# `exec "$(dirname "$0")/build/bin/llama-server"` and its usual variants: a path relative to the script.
WRAPPER_TARGET = re.compile(
    r"""\bexec\s+["'](?:\$\(dirname\ (?:--\ )?"?\$\{?0\}?"?\)|\$\{0%/\*\})/(?P<tail>[^"'$`\n]+)["']""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class BuildKind:
    """Facts about one build. `library_dir` is absolute with links resolved."""

    library_dir: Path
    via_wrapper: bool
    vulkan_only: bool
    bundled_hip: bool


def inspect_build(entry: Path, *, platform: str = sys.platform) -> BuildKind:
    """All facts about the build that `entry` starts."""
    real = Path(os.path.realpath(entry))
    head = _head(real)
    library_dir = _library_dir(real, head)
    names = _names(library_dir)
    vulkan = _has_library(names, "ggml-vulkan", platform)
    other_gpu = any(_has_library(names, stem, platform) for stem in ("ggml-cuda", "ggml-hip"))
    return BuildKind(
        library_dir=library_dir,
        via_wrapper=head.startswith("#!"),
        vulkan_only=vulkan and not other_gpu,
        bundled_hip=any(name.startswith("libggml-hip.so") for name in names),
    )


def _head(entry: Path) -> str:
    try:
        with entry.open("rb") as file:
            return file.read(HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _library_dir(real_entry: Path, head: str) -> Path:
    target = WRAPPER_TARGET.search(head) if head.startswith("#!") else None
    if target is None:
        return real_entry.parent
    return Path(os.path.realpath(real_entry.parent / target["tail"])).parent


def _names(directory: Path) -> list[str]:
    try:
        return [path.name for path in directory.iterdir()]
    except OSError:
        return []


def _has_library(names: list[str], stem: str, platform: str) -> bool:
    """Whether a library is present; a versioned one (`.so.0`) is as real as a plain one."""
    suffix = "(?:so|dylib)" if platform == "darwin" else "so"
    pattern = re.compile(rf"lib{re.escape(stem)}(?:\.\d+)*\.{suffix}(?:\.\d+)*")
    return any(pattern.fullmatch(name) for name in names)
