"""Identity of the files a launch depends on, to see that one has changed (07 §4.7). A few stat calls."""

from __future__ import annotations

from pathlib import Path

from framework.values.engine import FileId
from framework.values.plan import LaunchPlan
from framework.values.request import ModelRequest

FilesIdentity = tuple[FileId | None, ...]


def file_id(path: Path) -> FileId | None:
    """Path, size and modification time of a file, links resolved; None when it cannot be read."""
    try:
        info = path.stat()
    except OSError:
        return None
    return FileId(path, info.st_size, info.st_mtime_ns)


def files_identity(request: ModelRequest, plan: LaunchPlan | None) -> FilesIdentity:
    """Main file, projector, the drafter that is named, adapters, then the engine binary.

    Without a plan the main file's folder as well: a shard that was missing arrives there.
    """
    main = request.source.path or (plan.main_gguf if plan is not None else None)
    projector = plan.projector if plan is not None else request.projector
    drafter = request.spec.drafter.path if request.spec.drafter is not None else None
    adapters = (path for path, _ in request.adapters)
    paths = [main, None if projector == "auto" else projector, drafter, *adapters]
    if plan is None and main is not None:
        paths.append(main.parent)
    if plan is not None:
        paths.append(plan.engine.entry)
    elif request.engine.path is not None:
        paths.append(request.engine.path)
    return tuple(file_id(path) if path else None for path in paths)
