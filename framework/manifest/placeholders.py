"""`${NAME}` anywhere in a manifest is an error: nothing is substituted, and it must not reach a command line.

Called by `load.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from framework.manifest.document import Document
from framework.manifest.findings import Findings, Place, shown

PLACEHOLDER = re.compile(r"\$\{([^}]*)")
LONGEST_VARIABLE = 80


def note_placeholders(document: Document, findings: Findings) -> None:
    """Note every text of a document that holds one."""
    if "${" not in document.text and "\\u" not in document.text and "\\U" not in document.text:
        return
    for place, text in _texts(Place(document, ()), document.data):
        match = PLACEHOLDER.search(text)
        if match is not None:
            placeholder, variable = shown("${" + match.group(1) + "}"), match.group(1).removeprefix("env.")
            message = f"{place.name} holds the placeholder {placeholder}: nothing is substituted"
            hint = (
                f"write the value of {variable[:LONGEST_VARIABLE]} itself"
                if variable
                else "write the value itself"
            )
            findings.add("placeholder", place, f"{message}; {hint}", found=placeholder, allowed="plain text")


def _texts(place: Place, value: Any) -> Iterator[tuple[Place, str]]:
    """Every text below a place, keys too."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield place.child(key).key, key
            yield from _texts(place.child(key), inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(place.child(index), inner)
