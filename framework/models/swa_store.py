"""Window patterns that took time to find, kept in the state directory (02 §5.7).

A file that cannot be read is empty, one that cannot be written is not: the patterns are found again.
"""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path

from framework.models.swa_pattern import Entry, entry_of

log = logging.getLogger(__name__)

FILE_NAME = "swa_cache.json"
LIMIT_BYTES = 2**20


class PatternStore:
    """Patterns by architecture, for several threads. The file is read once, when first asked for."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / FILE_NAME
        self._lock = threading.Lock()
        self._known: dict[str, object] | None = None

    def all(self) -> dict[str, object]:
        """Everything stored, as it stands in the file; values may be anything."""
        with self._lock:
            return dict(self._loaded())

    def put(self, architecture: str, entry: Entry) -> None:
        """Store a pattern."""
        with self._lock:
            known = self._loaded()
            known[architecture] = entry
            text = json.dumps(known, indent=2, sort_keys=True)
        temporary = self._path.with_suffix(".tmp")
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self._path)
        except OSError as error:
            log.debug("window patterns are not kept: %s", error)

    def _loaded(self) -> dict[str, object]:
        if self._known is None:
            self._known = {name: value for name, value in _read(self._path).items() if _fits(value)}
        return self._known


def _read(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(LIMIT_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _fits(value: object) -> bool:
    return entry_of(value) is not None
