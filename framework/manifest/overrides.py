"""`[server]` keys given by environment or command line, over those of the file (01 §2.9).

Called by `load.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framework.manifest.document import Document
from framework.manifest.findings import Findings, Place
from framework.manifest.json_schema import node_at
from framework.manifest.schema_server import ServerTable
from framework.manifest.tables import Entry, read_table
from framework.values.override import Override

WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")


def read_overrides(overrides: Mapping[str, Override], findings: Findings) -> dict[str, Entry[ServerTable]]:
    """Each override as a `[server]` table of its own, by key; problems name its origin as their file."""
    return {key: _read(key, one, findings) for key, one in overrides.items()}


def _read(key: str, override: Override, findings: Findings) -> Entry[ServerTable]:
    raw = {key: _typed(key, override.text)}
    origin = override.origin
    document = Document(Path(origin), origin, "", b"", {"server": raw}, has_lines=False)
    return read_table("server", "", raw, Place(document, ("server",)), ServerTable, findings)


def _typed(key: str, text: str) -> Any:
    """Text as the type that the key has: variables and flags have no other way to write a number."""
    kind = node_at("ServerTable", (key,)).get("type")
    # What strip() takes for blanks is more than int() does.
    if kind == "integer" and WHOLE_NUMBER.fullmatch(number := text.strip()):
        return int(number)
    if kind == "array":
        return [part.strip() for part in text.split(",") if part.strip()]
    return text
