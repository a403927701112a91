"""A manifest's text for those who may look and not operate: what may be a secret is hidden. Pure.

Keys of `[access]` are digests or references, and a digest lets a weak key be guessed; values of `environment`
and arguments of engines are written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from framework.editing.documents import ManifestFile
from framework.engines.redaction import SECRET_WORDS, is_secret_name, redact_argv
from framework.manifest.document import Document, parse_document
from framework.manifest.findings import Findings
from framework.manifest.key_paths import KeyPath
from framework.manifest.positions import Span
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
    hidden = {document.positions.values[path]: f'"{REDACTED}"' for path in _secrets(document)}
    hidden |= dict.fromkeys(_telling_comments(document), f"# {REDACTED}")
    return _replaced(document.text, hidden)


def _telling_comments(document: Document) -> Iterator[Span]:
    """Comments in which a value may be a secret, as where a setting was commented out."""
    at = 0
    for line in _without_values(document).split("\n"):
        before, mark, comment = line.partition("#")
        start, end = at + len(before), at + len(line)
        at = end + 1
        is_long = len(comment) > LONGEST_COMMENT
        if mark and (is_long or NAMED_SECRET.search(document.text, start, end)):
            yield Span(start, end)


def _without_values(document: Document) -> str:
    """The text with plain letters in place of its values, which may hold what looks like a comment."""
    places = document.positions.values
    values = {places[path] for path in places if _is_scalar(document.at(path))}
    return _replaced(
        document.text, {span: re.sub(r"[^\n]", "x", document.text[slice(*span)]) for span in values}
    )


def _replaced(text: str, instead: Mapping[Span, str]) -> str:
    """The text with something else at these places, which do not overlap."""
    pieces, done = [], 0
    for span in sorted(instead):
        pieces += [text[done : span.start], instead[span]]
        done = span.end
    return "".join([*pieces, text[done:]])


def _is_scalar(value: object) -> bool:
    return not isinstance(value, list | dict)


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
