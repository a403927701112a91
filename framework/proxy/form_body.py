"""A form with one file, as clients upload sound (09 §6.2). Called with the bytes of a body.

All of it is in memory already, and bounded; a file on the disk would only be one more copy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from framework.proxy.errors import ProxyError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

# What a client sends wrong is told to it; a line for every wrong byte would fill the log.
logging.getLogger("python_multipart").setLevel(logging.ERROR)

MULTIPART = "multipart/form-data"
MOST_PARTS = 50
LONGEST_FIELD_BYTES = 2**20
LONGEST_HEADERS_BYTES = 16 * 2**10


@dataclass(frozen=True)
class Form:
    """The fields of a form by name, the last of several, and its file."""

    fields: Mapping[str, str]
    file: bytes = field(repr=False)
    raw: bytes = field(default=b"", repr=False)
    """The body as it came, which `content_type` tells how to read."""
    content_type: str = ""


async def parse_form(raw: bytes | bytearray, content_type: str) -> Form:
    """The form of a body. Raises ProxyError `unsupported_media_type` and `invalid_body`."""
    media_type, options = parse_options_header(content_type)
    if media_type.lower() != MULTIPART.encode():
        raise ProxyError(
            "unsupported_media_type", f"The body must be a form, sent with `Content-Type: {MULTIPART}`."
        )
    boundary = options.get(b"boundary")
    if not boundary:
        raise _unreadable("its Content-Type names no boundary")
    # Megabytes are gone through byte by byte where they look like the boundary.
    whole = bytes(raw)
    form = await asyncio.to_thread(_parsed, whole, boundary)
    return replace(form, raw=whole, content_type=content_type)


def _parsed(raw: bytes, boundary: bytes) -> Form:
    parts = _Parts()
    try:
        parser = MultipartParser(boundary, parts.callbacks())
        parser.write(raw)
        parser.finalize()
    except (FormParserError, ValueError) as error:
        raise _unreadable("its parts cannot be told apart") from error
    if not parts.is_ended:
        raise _unreadable("it ends in the middle")
    if not parts.file:
        raise ProxyError("invalid_body", "The form has no `file`, or an empty one.", param="file")
    return Form(parts.fields, parts.file)


class _Parts:
    """Collects what the parser finds."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.file = b""
        self.is_ended = False
        self._count = 0
        self._name = b""
        self._value = b""
        self._disposition = b""
        self._header_bytes = 0
        self._data = bytearray()
        self._is_file = False
        self._field = ""

    def callbacks(self) -> MultipartCallbacks:
        """By the names of the library."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_end,
            "on_part_data": self._add,
            "on_part_end": self._end,
            "on_end": self._all,
        }

    def _begin(self) -> None:
        self._count += 1
        if self._count > MOST_PARTS:
            raise _unreadable(f"it has more than {MOST_PARTS} parts")
        self._disposition, self._header_bytes, self._data = b"", 0, bytearray()

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += self._counted(data[start:end])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += self._counted(data[start:end])

    def _counted(self, piece: bytes) -> bytes:
        self._header_bytes += len(piece)
        if self._header_bytes > LONGEST_HEADERS_BYTES:
            raise _unreadable("the headers of a part are too long")
        return piece

    def _header_end(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value
        self._name = self._value = b""

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._is_file = b"filename" in options
        self._field = options.get(b"name", b"").decode("utf-8", "replace")
        if not self._field:
            raise _unreadable("a part has no name")
        if self._is_file and self.file:
            raise _unreadable("it holds more than one file")

    def _add(self, data: bytes, start: int, end: int) -> None:
        if not self._is_file and len(self._data) + end - start > LONGEST_FIELD_BYTES:
            raise _unreadable(f"a field has more than {LONGEST_FIELD_BYTES} bytes")
        self._data += data[start:end]

    def _end(self) -> None:
        if self._is_file:
            self.file = bytes(self._data)
        else:
            self.fields[self._field] = self._data.decode("utf-8", "replace")

    def _all(self) -> None:
        self.is_ended = True


def _unreadable(why: str) -> ProxyError:
    return ProxyError("invalid_body", f"The body is not a form that can be read: {why}.")
