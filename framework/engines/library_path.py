"""Where an engine finds its shared libraries, put in front of the loader's search path (06 §7.5-7.7).

File tests only, of Linux and macOS; called when a plan is made and before a probe. `root` stands for the
host's file system, so that a test can lay out another one.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from framework.values.engine import EngineBinary

VARIABLE = "LD_LIBRARY_PATH"
ROCM_ROOT_VARIABLES = ("HIP_PATH", "HIP_PATH_57", "ROCM_PATH")
ROCM_DEFAULT = "opt/rocm"
LIBRARY_FOLDERS = ("lib", "lib64")
WSL_MARKERS = ("librocdxg.so", "librocdxg.so.1")
ROCM_MARKERS = ("libhsa-runtime64.so", "libhsa-runtime64.so.1")
PIP_CUDA_PACKAGES = ("cu*", "cudnn", "nvjitlink")
HOST = Path("/")


@dataclass(frozen=True)
class LibraryPath:
    """Directories for the front of the search path, first one wins, and variables that go with them."""

    directories: tuple[Path, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Set only where the environment does not say otherwise."""


def library_path(
    binary: EngineBinary,
    environ: Mapping[str, str],
    *,
    root: Path = HOST,
    prefix: Path = Path(sys.prefix),
    system: str = sys.platform,
) -> LibraryPath:
    """What `binary` needs on this host. `environ` is read for the places of a ROCm install only."""
    if system == "darwin":  # builds find their libraries by relative run path
        return LibraryPath(defaults=dict(binary.env))
    wsl = tuple(_wsl_rocm(root))
    found = (
        *wsl,
        *_system_rocm(binary, environ, root),
        *_wheel_directories(binary),
        binary.library_dir,
        *_pip_cuda(prefix),
        *_system_cuda(root),
    )
    defaults = {name: value for name, value in binary.env.items() if name != VARIABLE}
    if wsl:
        defaults["HSA_ENABLE_DXG_DETECTION"] = "1"
    return LibraryPath(tuple(dict.fromkeys(found)), defaults)


def with_libraries(environ: Mapping[str, str], libraries: LibraryPath) -> dict[str, str]:
    """`environ` with the search path in front of the inherited one, and the defaults where nothing is set."""
    env = {**libraries.defaults, **environ}
    if libraries.directories:
        inherited = [part for part in environ.get(VARIABLE, "").split(":") if part]
        parts = [str(directory) for directory in libraries.directories]
        env[VARIABLE] = ":".join(dict.fromkeys(parts + inherited))
    return env


def _wheel_directories(binary: EngineBinary) -> Iterator[Path]:
    for part in binary.env.get(VARIABLE, "").split(":"):
        if part:
            yield Path(part)


def _wsl_rocm(root: Path) -> Iterator[Path]:
    """06 §7.6: in WSL the host's HIP runtime works, the one inside a build is for bare metal and faults."""
    if not (root / "dev/dxg").exists():
        return
    try:
        version = (root / "proc/version").read_text("utf-8", "replace")
    except OSError:
        return
    if "microsoft" in version.lower():
        for folder in LIBRARY_FOLDERS:
            if _holds_any(root / ROCM_DEFAULT / folder, WSL_MARKERS):
                yield root / ROCM_DEFAULT / folder


def _system_rocm(binary: EngineBinary, environ: Mapping[str, str], root: Path) -> Iterator[Path]:
    """06 §7.7: HSA, HIP, rocBLAS and LLVM from one release that fits the kernel driver."""
    if not binary.bundled_hip or (root / "dev/dxg").exists() or not (root / "dev/kfd").exists():
        return
    named = [Path(environ[name]) for name in ROCM_ROOT_VARIABLES if environ.get(name)]
    seen: set[Path] = set()
    for rocm in (*named, root / ROCM_DEFAULT):
        for folder in LIBRARY_FOLDERS:
            libraries = rocm / folder
            if libraries in seen or not _holds_any(libraries, ROCM_MARKERS):
                continue
            seen.add(libraries)
            yield libraries
            yield from _existing((libraries / "llvm/lib", rocm / "lib/llvm/lib"))


def _pip_cuda(prefix: Path) -> Iterator[Path]:
    for packages in _glob(prefix / "lib", "python*/site-packages/nvidia"):
        for pattern in PIP_CUDA_PACKAGES:
            yield from _existing(package / "lib" for package in _glob(packages, pattern))


def _system_cuda(root: Path) -> Iterator[Path]:
    local, targets = root / "usr/local", f"targets/{platform.machine()}-linux/lib"
    newer = ("cuda-12", "cuda-12.8")
    return _existing(
        (
            local / "cuda/lib64",
            local / "cuda" / targets,
            *(local / name / "lib64" for name in newer),
            *(local / name / targets for name in newer),
        )
    )


def _glob(directory: Path, pattern: str) -> list[Path]:
    try:
        return sorted(directory.glob(pattern))
    except OSError:
        return []


def _existing(directories: Iterable[Path]) -> Iterator[Path]:
    return (directory for directory in directories if directory.is_dir())


def _holds_any(directory: Path, names: Iterable[str]) -> bool:
    return any((directory / name).exists() for name in names)
