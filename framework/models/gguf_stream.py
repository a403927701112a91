"""Read GGUF's basic encodings from a file that may be cut, damaged or hostile (02 §2.1-2.3).

Used by gguf_header and gguf_tensors. Everything that is wrong with the bytes ends in `GgufFault`. Work and
memory are bounded whatever the bytes say: values are skipped by seeking, and what must be walked through
element by element counts against a budget. The file is read, not mapped: a file that shrinks while it is
mapped would kill the process.
"""

from __future__ import annotations

import struct
from typing import BinaryIO, Literal

HeaderStatus = Literal[
    "ok", "truncated", "corrupt", "not_gguf", "unsupported_version", "big_endian", "unreadable"
]

# GGUF value types (02 §2.2).
STRING, ARRAY, BOOL = 8, 9, 7
INTEGER_FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 10: "<Q", 11: "<q"}
FIXED_SIZES = {0: 1, 1: 1, 7: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 10: 8, 11: 8, 12: 8}

# 02 §1.2
KEY_LIMIT_BYTES = 65_535
TEXT_LIMIT_BYTES = 64 * 2**20
NESTING_LIMIT = 4
# The largest real headers walk through about a million strings (tokens and merges); this is some seconds.
ELEMENT_BUDGET = 8 * 2**20
WINDOW_BYTES = 2**20

LENGTH = struct.Struct("<Q")


class GgufFault(Exception):
    """Why reading stopped; `detail` is a clause about the file, without its name."""

    def __init__(self, status: HeaderStatus, detail: str) -> None:
        super().__init__(detail)
        self.status: HeaderStatus = status
        self.detail = detail


class GgufStream:
    """A position in `file`, of which the first `size` bytes are there. Raises `GgufFault` at its end."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._window = b""
        self._window_at = 0
        self._budget = ELEMENT_BUDGET
        self.size = size
        self.at = 0

    @property
    def left(self) -> int:
        """Bytes behind the position."""
        return self.size - self.at

    def number(self, form: str) -> int:
        """One integer in a `struct` format."""
        value: int = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def numbers(self, form: str, count: int) -> tuple[int, ...]:
        """`count` numbers of one `struct` format."""
        packed = struct.Struct(f"<{count}{form[-1]}")
        return packed.unpack(self.take(packed.size))

    def text(self, limit: int) -> bytes:
        """One string as bytes; longer than `limit` is `corrupt`."""
        length = self._length()
        if length > limit:
            raise GgufFault("corrupt", f"a text of {length} bytes where at most {limit} are allowed")
        return self.take(length)

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        offset = self._fill(count)
        self.at += count
        return self._window[offset : offset + count]

    def skip(self, count: int) -> None:
        """Move on without reading."""
        if count > self.left:
            self.at = self.size
            raise GgufFault("truncated", "the header does not end within the file")
        self.at += count

    def skip_value(self, type_id: int, depth: int = 0) -> None:
        """Move behind a value of any type."""
        if type_id in FIXED_SIZES:
            self.skip(FIXED_SIZES[type_id])
        elif type_id == STRING:
            self.skip(self._length())
        elif type_id == ARRAY:
            self.skip_elements(*self.array_head(), depth=depth + 1)
        else:
            raise GgufFault("corrupt", f"a value of the unknown type {type_id}")

    def array_head(self) -> tuple[int, int]:
        """Element type and count of an array."""
        return self.number("<I"), self._length()

    def skip_elements(self, type_id: int, count: int, *, depth: int = 1) -> None:
        """Move behind the elements of an array."""
        if depth > NESTING_LIMIT:
            raise GgufFault("corrupt", f"arrays nested more than {NESTING_LIMIT} deep")
        if type_id in FIXED_SIZES:
            self.skip(FIXED_SIZES[type_id] * count)
        elif type_id == STRING:
            self._skip_strings(count)
        elif type_id == ARRAY:
            self.spend(min(count, self.left))
            for _ in range(count):
                self.skip_value(ARRAY, depth)
        else:
            raise GgufFault("corrupt", f"an array of the unknown type {type_id}")

    def spend(self, elements: int) -> None:
        """Account for elements that are looked at one by one."""
        self._budget -= elements
        if self._budget < 0:
            raise GgufFault("corrupt", f"more than {ELEMENT_BUDGET} elements in the header")

    def _skip_strings(self, count: int) -> None:
        """Hop from length to length inside the window: large vocabularies are walked through here."""
        self.spend(min(count, self.left // LENGTH.size + 1))
        unpack = LENGTH.unpack_from
        while count:
            offset = self._fill(LENGTH.size)
            window, last = self._window, len(self._window) - LENGTH.size
            while count and offset <= last:
                offset += LENGTH.size + unpack(window, offset)[0]
                count -= 1
            self.skip(self._window_at + offset - self.at)

    def _length(self) -> int:
        length: int = LENGTH.unpack(self.take(LENGTH.size))[0]
        return length

    def _fill(self, count: int) -> int:
        """Have `count` bytes at the position in the window; returns where in it they start."""
        offset = self.at - self._window_at
        if offset >= 0 and offset + count <= len(self._window):
            return offset
        if count > self.left:
            raise GgufFault("truncated", "the header does not end within the file")
        self._file.seek(self.at)
        self._window = self._file.read(min(max(count, WINDOW_BYTES), self.left))
        self._window_at = self.at
        if len(self._window) < count:  # the file became shorter while it was read
            self.size = self.at + len(self._window)
            raise GgufFault("truncated", "the file became shorter while it was read")
        return 0
