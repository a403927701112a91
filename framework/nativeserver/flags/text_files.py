"""Values that name a file or folder, or are JSON (12 §19.1). Used by the tables of flags."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from framework.nativeserver.flags.values import Value, shown

MOST_BYTES = 16 * 2**20


def read_text(name: str) -> str:
    """The text of a plain file of at most 16 MiB. Raises ValueError."""
    path = Path(name)
    try:
        # Anything else could block for ever, or never end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError(f"{shown(name)} is not a file")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"error: failed to open file {shown(name)} ({error.strerror})") from error
    if len(data) > MOST_BYTES:
        raise ValueError(f"{shown(name)} has more than {MOST_BYTES // 2**20} MiB")
    try:
        # Editors of some systems write a byte order mark, which is no part of the text.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{shown(name)} is not UTF-8 text") from error


def directory(name: str) -> Path:
    """A folder that exists. Raises ValueError."""
    try:
        is_folder = Path(name).is_dir()
    except OSError:
        is_folder = False
    if not is_folder:
        raise ValueError(f"not a directory: {shown(name)}")
    return Path(name)


def parse_json(text: str) -> Any:
    """Any JSON value. Raises ValueError with the parser's words."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"not valid JSON: {error}") from error


def json_object(text: str) -> dict[str, Any]:
    """A JSON object. Raises ValueError."""
    found = parse_json(text)
    if isinstance(found, dict):
        return found
    raise ValueError(f"expected a JSON object, found {shown(text)}")


def key_lines(name: str) -> tuple[str, ...]:
    """API keys of a file: one a line, blank lines and those that start with `#` left out."""
    lines = (line.strip() for line in read_text(name).splitlines())
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    if not keys:
        raise ValueError(f"{shown(name)} has no API key")
    return keys


TEXT_FILE = Value("FNAME", read_text)
DIRECTORY = Value("PATH", directory)
JSON_OBJECT = Value("JSON", json_object)
KEY_FILE = Value("FNAME", key_lines)
