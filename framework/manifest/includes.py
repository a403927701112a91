"""The files that `include` names: found, read, in a fixed order (01 §2.4). Called by `load.py`."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from framework.manifest.bad_value import BadValue
from framework.manifest.document import Document, label_of, parse_document, read_document
from framework.manifest.findings import Findings, Place, shown
from framework.manifest.texts import parse_text

# One file a model is the most that anybody does; more is a pattern that caught a wrong directory.
MAX_INCLUDED_FILES = 1000


def patterns_of(main: Document, findings: Findings) -> tuple[tuple[str, Place], ...]:
    """The patterns of `include` that can be used; the others are noted."""
    place = Place(main, ("include",))
    written = main.data.get("include", [])
    if not isinstance(written, list):
        message = (
            f'include must be a list of paths or patterns, as in ["models.d/*.toml"], but is {shown(written)}'
        )
        findings.add("wrong_type", place, message, found=shown(written), allowed="a list of texts")
        return ()
    usable = []
    for index, pattern in enumerate(written):
        spot = place.child(index)
        try:
            parse_text(pattern, what="a path or pattern")
            if "**" in pattern:
                raise BadValue("bad_pattern", "a pattern without **, which would search whole trees")
            usable.append((pattern, spot))
        except BadValue as bad:
            message = f"{spot.name} must be {bad.must_be}, but is {shown(pattern)}"
            findings.add(bad.code, spot, message, found=shown(pattern), allowed=bad.must_be)
    return tuple(usable)


def read_included(
    main: Document,
    patterns: tuple[tuple[str, Place], ...],
    findings: Findings,
    edited: Mapping[str, bytes],
) -> tuple[Document, ...]:
    """All files that the patterns match, each once, patterns in order and files by name. What is `edited`, by
    the name that problems give it, stands in place of what the file holds."""
    documents: dict[Path, Document] = {}
    own_path = Path(os.path.normpath(main.path))
    for pattern, place in patterns:
        found = matching_files(main.path.parent, pattern)
        paths = [path for path in found if path != own_path]
        if not paths:
            _note_empty(pattern, place, findings, only_itself=bool(found))
        for path in paths:
            if len(documents) >= MAX_INCLUDED_FILES:
                message = f"include names more than {MAX_INCLUDED_FILES} files"
                findings.add(
                    "include_too_many", place, message, allowed=f"at most {MAX_INCLUDED_FILES} files"
                )
                return tuple(documents.values())
            if path not in documents:
                label = label_of(Path(main.label).parent / os.path.relpath(path, main.path.parent))
                if label in edited:
                    documents[path] = parse_document(path, label, edited[label], findings)
                else:
                    documents[path] = read_document(path, label, findings)
    return tuple(documents.values())


def _note_empty(pattern: str, place: Place, findings: Findings, *, only_itself: bool) -> None:
    what = "matches only this file, which cannot include itself" if only_itself else "matches no file"
    message = f"{place.name} {shown(pattern)} {what}"
    findings.add("include_empty", place, message, found=shown(pattern), severity="warning")


def matching_files(directory: Path, pattern: str) -> list[Path]:
    """Paths that a pattern matches below a directory, sorted; directories are left out."""
    # Unlike Path.glob, this takes absolute patterns, and "x/../*.toml".
    matches = glob.iglob(pattern, root_dir=directory)  # noqa: PTH207
    found = islice(matches, MAX_INCLUDED_FILES + 1)
    paths = sorted(directory / name for name in found)
    return [Path(os.path.normpath(path)) for path in paths if not path.is_dir()]
