"""Where the Hugging Face cache lies and how it is laid out (02 §7). Reads only; faults read as "not there".

    <cache>/models--<owner>--<name>/snapshots/<revision>/<file>     links into blobs/

Called by hub.cached, hub.disk and hub.transfer.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

log = logging.getLogger(__name__)

REPO_PREFIX = "models--"
SNAPSHOTS = "snapshots"
GGUF_SUFFIX = ".gguf"
# More entries than any repository has; a cache that links in circles must not keep us busy.
MOST_FILES = 100_000
# Also the separators that Windows knows: a listing comes from outside and ends up as a path here.
BAD_IN_PATH = re.compile(r"[\x00-\x1f\x7f\\:]")


def cache_dir(environ: Mapping[str, str]) -> Path:
    """The cache of the hub's own client, by its own variables."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if text := environ.get(variable):
            return _expanded(text, environ)
    if text := environ.get("HF_HOME"):
        return _expanded(text, environ) / "hub"
    base = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return _expanded(base, environ) / "huggingface" / "hub"


def repo_folder(repo: str) -> str:
    """Name of a repository's directory below the cache."""
    return REPO_PREFIX + repo.replace("/", "--")


def is_safe_path(path: str) -> bool:
    """Whether a file name from a listing stays below the directory that it is joined to."""
    return not BAD_IN_PATH.search(path) and all(part not in ("", ".", "..") for part in path.split("/"))


def canonical_repo(cache: Path, repo: str) -> str:
    """The spelling that the cache already has, so that all files of a model share one entry (02 §7.2)."""
    directories = repo_dirs(cache, repo)
    if not directories:
        return repo
    owner, _, name = directories[0].name.removeprefix(REPO_PREFIX).partition("--")
    found = f"{owner}/{name}"
    # Only the case may differ: "--" inside a name would not come back as it was.
    if found.lower() != repo.lower():
        return repo
    if found != repo:
        log.info("%s is in the cache as %s", repo, found)
    return found


def repo_dirs(cache: Path, repo: str) -> list[Path]:
    """Directories of a repository in every spelling of its case, the exact one first."""
    wanted = repo_folder(repo)
    found = [path for path in entries(cache) if path.name.lower() == wanted.lower() and _is_dir(path)]
    return sorted(found, key=lambda path: (path.name != wanted, path.name))


def snapshots(cache: Path, repo: str) -> list[Path]:
    """Every snapshot of a repository, newest first."""
    found: list[tuple[float, str, Path]] = []
    for directory in repo_dirs(cache, repo):
        for path in entries(directory / SNAPSHOTS):
            try:
                if path.is_dir():
                    found.append((path.stat().st_mtime, path.name, path))
            except OSError as error:
                log.debug("snapshot %s: %s", path, error)
    return [path for _, _, path in sorted(found, key=lambda item: item[:2], reverse=True)]


def gguf_files(snapshot: Path) -> list[str]:
    """Relative paths of all GGUF files below a snapshot, sorted (02 §7.1)."""
    return sorted(name for name in _walk(snapshot) if name.lower().endswith(GGUF_SUFFIX))


def file_below(root: Path, name: str) -> Path | None:
    """The file of this relative name, links followed; None when there is none, or the name leads out."""
    if not is_safe_path(name):
        return None
    path = root.joinpath(*name.split("/"))
    try:
        return path if path.is_file() else None
    except OSError as error:
        log.debug("%s: %s", path, error)
        return None


def size_of(path: Path) -> int | None:
    """Bytes of a file, links followed; None when it cannot be measured."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def snapshot_of(path: Path) -> Path | None:
    """The snapshot that a file lies in (02 §7.10)."""
    return next((parent for parent in path.parents if parent.parent.name == SNAPSHOTS), None)


def entries(directory: Path) -> list[Path]:
    """What is in a directory; nothing when it cannot be looked at."""
    try:
        return list(directory.iterdir())
    except OSError as error:
        log.debug("%s: %s", directory, error)
        return []


def _walk(root: Path) -> Iterator[str]:
    seen = 0
    for folder, directories, files in os.walk(root):
        directories.sort()
        for file in files:
            seen += 1
            if seen > MOST_FILES:
                return
            path = Path(folder, file)
            name = path.relative_to(root).as_posix()
            if file_below(root, name) is not None:
                yield name


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _expanded(text: str, environ: Mapping[str, str]) -> Path:
    """With `~` and variables of the given environment, as the client expands them in its own."""
    text = Template(text).safe_substitute(environ)
    if text == "~" or text.startswith("~/"):
        text = environ.get("HOME", str(Path.home())) + text[1:]
    return Path(text).expanduser().absolute()
