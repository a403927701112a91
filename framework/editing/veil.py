"""A manifest's text for those who may look and not operate: what may be a secret is hidden. Pure.

Keys of `[access]` are digests or references, and a digest lets a weak key be guessed; values of `environment`
and arguments of engines are written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from framework.editing.documents import ManifestFile
from framework.engines.redaction import SECRET_WORDS, is_secret_name, redact_argv
from framework.manifest.document import Document, parse_document
from framework.manifest.findings import Findings
from framework.manifest.key_paths import KeyPath
from framework.values.plan import REDACTED

NOT_SHOWN = "# This file is no TOML at the moment. Who may not change it sees it again once it is.\n"
# In a line that was commented out: a name that sounds like a secret, with a value.
NAMED_SECRET = re.compile(r"(?i)(?:" + "|".join(SECRET_WORDS) + r")\w{0,64}[\"']?[ \t]*[=:]")
# Nobody writes longer ones; to look for a name in them takes time, during which nothing else goes on.
LONGEST_COMMENT = 1000
REFERENCES = ("env:", "file:")


def veiled(file: ManifestFile) -> str:
    """The text with secrets hidden; nothing of it while it cannot be read as TOML."""
    findings = Findings()
    document = parse_document(file.path, file.name, file.raw, findings)
    if findings.has_errors:
        return NOT_SHOWN
    text, hidden = document.text, f'"{REDACTED}"'
    spans = {document.positions.values[path] for path in _secrets(document)}
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + hidden + text[end:]
    return "\n".join(map(_without_secret, text.split("\n")))


def _without_secret(line: str) -> str:
    mark, is_comment, rest = line.partition("#")
    if not is_comment or mark.strip(" \t"):
        return line
    if len(rest) <= LONGEST_COMMENT and NAMED_SECRET.search(rest) is None:
        return line
    return f"{mark}# {REDACTED}"


def _secrets(document: Document) -> Iterator[KeyPath]:
    places = document.positions.values
    for path in places:
        value = document.at(path)
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            shown = redact_argv(value)
            hidden = ((*path, n) for n, one in enumerate(value) if shown[n] != one)
            yield from (place for place in hidden if place in places)
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        is_secret = is_secret_name(name) and not (path[0] == "access" and name == "tokens")
        if isinstance(value, str) and is_secret and not value.startswith(REFERENCES):
            yield path
