"""One TOML file of a manifest: its text, its values, the places of both, and what is wrong with it as TOML.

Reads a file completely or says why not: missing, not a regular file, too large, not UTF-8. Byte order mark
and CRLF are fine. Knows nothing of what the keys mean.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import tomli

from framework.manifest.findings import Findings
from framework.manifest.key_paths import KeyPath, dotted
from framework.manifest.positions import MAX_DEPTH, Positions, Span, scan
from framework.manifest.toml_errors import explain
from framework.values.plain_text import encodable
from framework.values.problem import Problem

# Some five thousand models. A larger file is something else by mistake, and would take seconds to parse.
MAX_FILE_BYTES = 2**20
BYTE_ORDER_MARK = "\ufeff"
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, eq=False)
class Document:
    """A file that was read. `data` is empty when the text is not TOML."""

    path: Path
    label: str
    """How problems name the file."""
    text: str
    """Without byte order mark, line ends `\\n`."""
    raw: bytes
    """What the file holds, for digests."""
    data: dict[str, Any] = field(default_factory=dict)
    has_lines: bool = True
    """False for what stands in no file."""

    @cached_property
    def positions(self) -> Positions:
        """Places of keys and values; computed at the first problem."""
        return scan(self.text)

    def at(self, path: KeyPath) -> Any:
        """The value at a path that exists."""
        node: Any = self.data
        for part in path:
            node = node[part]
        return node


# Of the files that are read as TOML only the manifest itself can be missing: others were found in a folder.
HOW_TO_NAME = "a manifest; name it with --manifest, or write one as docs/own-model.md shows"


class Unreadable(Exception):
    """A file that cannot be read; the message is a sentence without its name."""

    def __init__(self, code: str, message: str, *, allowed: str = "", line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.code = code
        self.allowed = allowed
        self.line = line
        self.column = column


def label_of(path: Path) -> str:
    """How problems and pages name a file: a byte of its name that is no UTF-8 is shown as `\\xff`."""
    return encodable(str(path))


def read_bytes(path: Path, limit_bytes: int) -> bytes:
    """The content of a regular file of at most `limit_bytes`. Raises `Unreadable`; never waits on a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unreadable("not_a_file", "is not a regular file")
            content = file.read(limit_bytes + 1)
    except FileNotFoundError as error:
        raise Unreadable("file_missing", "does not exist") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Unreadable("unreadable", f"cannot be read: {reason}") from error
    if len(content) > limit_bytes:
        limit = f"{limit_bytes / 2**20:g} MiB"
        raise Unreadable("too_large", f"is larger than {limit}", allowed=f"at most {limit}")
    return content


def decode(raw: bytes) -> str:
    """Text of a UTF-8 file. Raises `Unreadable` with the place of the first byte that is not."""
    if raw.startswith(UTF16_MARKS) or 0 in raw[:2]:
        raise Unreadable("not_utf8", "is UTF-16, not UTF-8: save it with that encoding", allowed="UTF-8 text")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8").removeprefix(BYTE_ORDER_MARK)
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        message = f"is not UTF-8: byte 0x{raw[error.start]:02x} at offset {error.start}"
        raise Unreadable("not_utf8", message, allowed="UTF-8 text", line=line, column=column) from error


def read_document(path: Path, label: str, findings: Findings) -> Document:
    """A TOML file. What is wrong with it is noted; what can be read all the same is in `data`."""
    try:
        raw = read_bytes(path, MAX_FILE_BYTES)
    except Unreadable as error:
        return _unreadable(path, label, b"", error, findings)
    return parse_document(path, label, raw, findings)


def parse_document(path: Path, label: str, raw: bytes, findings: Findings) -> Document:
    """The same for content that is there already."""
    try:
        text = decode(raw).removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")
    except Unreadable as error:
        return _unreadable(path, label, raw, error, findings)
    document = Document(path, label, text, raw)
    # tomli takes quadratic time over dotted keys of very many parts: look before it does.
    if any(line.count(".") > MAX_DEPTH for line in text.split("\n")) and document.positions.too_deep:
        _add_too_deep(document, findings)
        return document
    try:
        return replace(document, data=tomli.loads(text))
    except RecursionError:
        _add_too_deep(document, findings)
    except ValueError as error:
        if document.positions.duplicates:
            return _without_duplicates(document, findings)
        _add_toml_error(document, text, error, findings)
    return document


def _unreadable(path: Path, label: str, raw: bytes, error: Unreadable, findings: Findings) -> Document:
    message = f"the file {error}"
    allowed = HOW_TO_NAME if error.code == "file_missing" else error.allowed
    findings.add_problem(Problem(error.code, label, error.line, error.column, "", message, allowed=allowed))
    return Document(path, label, "", raw)


def _without_duplicates(document: Document, findings: Findings) -> Document:
    """Report names that are declared twice and read on as if the second ones were not there."""
    for duplicate in document.positions.duplicates:
        name = dotted(duplicate.path)
        line, column = document.positions.line_column(duplicate.first.start)
        message = f"{name} is declared twice; it stands first at {document.label}:{line}:{column}"
        again = document.positions.line_column(duplicate.second.start)
        findings.add_problem(Problem("duplicate_name", document.label, *again, name, message, found=name))
    text = _blanked(document.text, [duplicate.statement for duplicate in document.positions.duplicates])
    try:
        data = tomli.loads(text)
    except (ValueError, RecursionError) as error:
        _add_toml_error(document, text, error, findings)
        return document
    return replace(document, data=data)


def _blanked(text: str, statements: list[Span]) -> str:
    """The text with blanks in place of these statements; line ends stay, so that no place moves."""
    pieces, done = [], 0
    for start, end in sorted(statements):
        pieces += [text[done:start], re.sub(r"[^\n]", " ", text[max(start, done) : end])]
        done = max(done, end)
    return "".join([*pieces, text[done:]])


def _add_toml_error(document: Document, text: str, error: Exception, findings: Findings) -> None:
    said = explain(text, error)
    findings.add_problem(Problem("toml_syntax", document.label, said.line, said.column, "", said.message))


def _add_too_deep(document: Document, findings: Findings) -> None:
    span = document.positions.too_deep
    line, column = document.positions.line_column(span.start if span else 0)
    message = "tables or lists are nested too deeply to be a manifest"
    allowed = f"at most {MAX_DEPTH} levels"
    findings.add_problem(Problem("too_deep", document.label, line, column, "", message, allowed=allowed))
