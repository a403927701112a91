"""What the header of a GGUF file says about a model (02 §2). Called by planning, inspect and file_set.

`read_header` never raises: what is wrong with a file is the status of the result, and the pairs read
before the fault stand.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from framework.models.gguf_fields import TEMPLATE, GgufHeader, Pairs, header_of, is_wanted
from framework.models.gguf_stream import (
    ARRAY,
    BOOL,
    INTEGER_FORMATS,
    KEY_LIMIT_BYTES,
    STRING,
    TEXT_LIMIT_BYTES,
    GgufFault,
    GgufStream,
    HeaderStatus,
)

MAGIC = b"GGUF"
FIRST_VERSION = 2
VERSION_LOW_BITS = 0xFFFF
# The smallest pair: an empty key (8 bytes of length), a type (4), a value of one byte (02 §2.14).
PAIR_BYTES = 13
# Real headers have some dozens of pairs.
PAIR_LIMIT = 65_536
# Values per layer; more are of no model, and are skipped.
ARRAY_LIMIT = 65_536
# The longest real templates have some 100 kB. Of a longer one we only know that it is there.
TEMPLATE_LIMIT_BYTES = 2**20
# What a number of a kept list takes in memory, and what a kept pair takes beside its key.
NUMBER_BYTES, PAIR_OVERHEAD_BYTES = 40, 200
CHANGED = "is being written to, or was just now"


@dataclass(frozen=True)
class HeaderResult:
    """Status, what is wrong (a clause, empty for `ok`), and the facts; `header` is always there."""

    status: HeaderStatus
    detail: str = ""
    header: GgufHeader = field(default_factory=GgufHeader)


@dataclass
class RawHeader:
    """A header as read: its pairs, the number of tensors, and how it ended."""

    pairs: Pairs = field(default_factory=Pairs)
    tensor_count: int = 0
    status: HeaderStatus = "ok"
    detail: str = ""
    needed_bytes: int = 0
    """How much of the file has to be there to read on, where it ended too early."""


def read_header(path: Path) -> HeaderResult:
    """The header of a local file. Blocks for some 30 ms; files that cannot be read are `unreadable`."""
    try:
        with open_gguf(path) as (file, size):
            return parse_header(file, size)
    except GgufFault as fault:
        return HeaderResult(fault.status, fault.detail)
    except OSError as error:
        return HeaderResult("unreadable", os_cause(error))


def parse_header(file: BinaryIO, size: int) -> HeaderResult:
    """The header at the beginning of `file`, of which `size` bytes are there (a fetched part, say)."""
    raw = read_pairs(GgufStream(file, size))
    return HeaderResult(raw.status, raw.detail, header_of(raw.pairs))


def read_pairs(stream: GgufStream) -> RawHeader:
    """Read up to the tensor directory. A fault ends the reading and is recorded, the pairs so far stay."""
    raw = RawHeader()
    try:
        pair_count = _read_start(stream, raw)
        for _ in range(pair_count):
            _read_pair(stream, raw.pairs)
    except GgufFault as fault:
        raw.status, raw.detail, raw.needed_bytes = fault.status, fault.detail, fault.needed_bytes
    return raw


@contextmanager
def open_gguf(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The file and its size. Raises OSError, or `GgufFault` for what is empty or no regular file.

    A file that changes meanwhile ends in `GgufFault` as well: what was read of it may belong to no version.
    """
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):  # before fdopen, which says it in its own words
        os.close(descriptor)
        raise GgufFault("unreadable", "is a directory")
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise GgufFault("unreadable", "is not a regular file")
        if status.st_size == 0:
            raise GgufFault("unreadable", "is empty")
        yield file, status.st_size
        after = os.fstat(descriptor)
        if (after.st_size, after.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
            raise GgufFault("unreadable", CHANGED)


def _read_start(stream: GgufStream, raw: RawHeader) -> int:
    """Magic, version and counts; returns the number of pairs. The order of checks is that of 02 §2.5."""
    magic = stream.take(min(len(MAGIC), stream.left))
    if magic != MAGIC:
        raise GgufFault("not_gguf", f"starts with {_shown(magic)}")
    version = stream.number("<I")
    if version and not version & VERSION_LOW_BITS:
        raise GgufFault("big_endian", "is big-endian; only little-endian files can be served")
    if version < FIRST_VERSION:
        detail = f"has GGUF version {version}; {FIRST_VERSION} is the first supported"
        raise GgufFault("unsupported_version", detail)
    raw.tensor_count = stream.number("<Q")
    pair_count = stream.number("<Q")
    if pair_count > PAIR_LIMIT or not stream.can_hold(pair_count, PAIR_BYTES):
        raise GgufFault("corrupt", f"claims {pair_count} header entries, more than the file can hold")
    return pair_count


def _read_pair(stream: GgufStream, pairs: Pairs) -> None:
    try:
        key = stream.text(KEY_LIMIT_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        raise GgufFault("corrupt", "a header key that is not UTF-8") from None
    type_id = stream.number("<I")
    if not is_wanted(key):
        stream.skip_value(type_id)
        return
    stream.keep(len(key) + PAIR_OVERHEAD_BYTES)
    if type_id == STRING:
        _read_text(stream, key, pairs)
    elif type_id == ARRAY:
        _read_array(stream, key, pairs)
    elif type_id == BOOL:
        pairs.flags[key] = stream.number("<B") != 0
    elif type_id in INTEGER_FORMATS:
        pairs.numbers[key] = stream.number(INTEGER_FORMATS[type_id])
    else:
        stream.skip_value(type_id)


def _read_text(stream: GgufStream, key: str, pairs: Pairs) -> None:
    if key != TEMPLATE:
        text = stream.text(TEXT_LIMIT_BYTES)
    else:
        short, pairs.template_bytes = stream.short_text(TEMPLATE_LIMIT_BYTES)
        if short is None:
            return
        text = short
    stream.keep(len(text))
    pairs.texts[key] = text.decode("utf-8", "replace")


def _read_array(stream: GgufStream, key: str, pairs: Pairs) -> None:
    """Counts are kept for every array, elements only of integers and booleans, and only of a sane number."""
    type_id, count = stream.array_head()
    pairs.counts[key] = count
    form = "<?" if type_id == BOOL else INTEGER_FORMATS.get(type_id)
    if form is None or count > ARRAY_LIMIT:
        stream.skip_elements(type_id, count)
        return
    stream.keep(count * NUMBER_BYTES)
    pairs.arrays[key] = stream.numbers(form, count)


def _shown(magic: bytes) -> str:
    return repr(magic.decode("ascii", "backslashreplace"))


def os_cause(error: OSError) -> str:
    """Why the system refused a file, as a clause."""
    reason = (error.strerror or "unknown error").lower()
    return f"cannot be read: {reason}"
