"""Read GGUF's basic encodings from a file that may be cut, damaged or hostile (02 §2.1-2.3).

Used by gguf_header and gguf_tensors. Everything that is wrong with the bytes ends in `GgufFault`. Work and
memory are bounded whatever the bytes say: values are skipped by seeking; what has to be read, walked through
or kept counts against budgets. The file is read, not mapped: a file that shrinks while it is
mapped would kill the process.
"""

from __future__ import annotations

import re
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
# Headers of real models take 30 MB at most, and what is skipped costs nothing.
READ_BUDGET_BYTES = 256 * 2**20
# What is kept of all keys, texts and lists together.
KEEP_BUDGET_BYTES = TEXT_LIMIT_BYTES
# Reading on takes ever larger pieces; after a jump it starts small again, since more jumps may follow.
SMALLEST_READ_BYTES = 2**12
LARGEST_READ_BYTES = 2**20

HEADER_CUT = "the header does not end within the file"
LENGTH = struct.Struct("<Q")
# A run of short strings: walking through them in the regular expression engine is several times faster than
# in a loop. Which lengths it knows is a matter of speed only; the most frequent ones are tried first.
RUN_STRINGS = 256
RUN_LENGTHS = (7, 8, 6, 9, 5, 10, 4, 11, 3, 12, 13, 2, 14, 1, 0, *range(15, 64))
ZEROS = rb"\x00{%d}" % (LENGTH.size - 1)
RUN = re.compile(
    b"(?s:%s){%d}+"
    % (b"|".join(b"\\x%02x%s.{%d}" % (length, ZEROS, length) for length in RUN_LENGTHS), RUN_STRINGS)
)


class GgufFault(Exception):
    """Why reading stopped; `detail` is a clause about the file, without its name.

    `needed_bytes` is how much of the file would have to be there to read on, where that was the trouble.
    """

    def __init__(self, status: HeaderStatus, detail: str, needed_bytes: int = 0) -> None:
        super().__init__(detail)
        self.status: HeaderStatus = status
        self.detail = detail
        self.needed_bytes = needed_bytes


class GgufStream:
    """A position in `file`, of which the first `size` bytes are there. Raises `GgufFault` at their end.

    `total_bytes` is the size of the whole file, where only its beginning is there.
    """

    def __init__(self, file: BinaryIO, size: int, total_bytes: int | None = None) -> None:
        self._file = file
        self._window = b""
        self._window_at = 0
        self._read_bytes = SMALLEST_READ_BYTES
        self._element_budget = ELEMENT_BUDGET
        self._read_budget_bytes = READ_BUDGET_BYTES
        self._keep_budget_bytes = KEEP_BUDGET_BYTES
        self.size = size
        self.total_bytes = size if total_bytes is None else total_bytes
        self.at = 0

    @property
    def left(self) -> int:
        """Bytes behind the position."""
        return self.size - self.at

    def can_hold(self, count: int, smallest_bytes: int) -> bool:
        """Whether so many things of at least this size can still come."""
        return count * smallest_bytes <= self.total_bytes - self.at

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
        return self.take(self._text_length(limit))

    def short_text(self, limit: int) -> tuple[bytes | None, int]:
        """As `text`, but one of more than `limit` bytes is passed over and None; and its length."""
        length = self._text_length(TEXT_LIMIT_BYTES)
        if length <= limit:
            return self.take(length), length
        self.skip(length)
        return None, length

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        offset = self._fill(count)
        self.at += count
        return self._window[offset : offset + count]

    def skip(self, count: int) -> None:
        """Move on without reading."""
        if count > self.left:
            needed_bytes = self.at + count
            self.at = self.size
            raise GgufFault("truncated", HEADER_CUT, needed_bytes)
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
        self._element_budget -= elements
        if self._element_budget < 0:
            raise GgufFault("corrupt", f"more than {ELEMENT_BUDGET} elements in the header")

    def keep(self, size_bytes: int) -> None:
        """Account for something that stays in memory."""
        self._keep_budget_bytes -= size_bytes
        if self._keep_budget_bytes < 0:
            raise GgufFault("corrupt", f"more than {KEEP_BUDGET_BYTES} bytes of facts in the header")

    def _skip_strings(self, count: int) -> None:
        """Walk through strings. Where the data ends among them, the fault says how long they will all be."""
        self.spend(min(count, self.left // LENGTH.size + 1))
        start, left = self.at, count
        try:
            while left:
                left -= self._skip_strings_of_window(left)
        except GgufFault as fault:
            mean_bytes = (self.size - start) / max(1, count - left)
            fault.needed_bytes = max(fault.needed_bytes, self.size + int(mean_bytes * left))
            raise

    def _skip_strings_of_window(self, count: int) -> int:
        """Hop from length to length inside the window; returns how many strings were passed."""
        offset, left = self._fill(LENGTH.size), count
        while left >= RUN_STRINGS and (run := RUN.match(self._window, offset)):
            offset, left = run.end(), left - RUN_STRINGS
        hops, offset = self._hop(min(left, RUN_STRINGS), offset)
        self.skip(self._window_at + offset - self.at)
        return count - left + hops

    def _hop(self, count: int, offset: int) -> tuple[int, int]:
        """Pass strings one by one while their lengths lie in the window; how many, and where the next is."""
        window, last, unpack = self._window, len(self._window) - LENGTH.size, LENGTH.unpack_from
        for hops in range(count):
            if offset > last:
                return hops, offset
            offset += LENGTH.size + unpack(window, offset)[0]
        return count, offset

    def _text_length(self, limit: int) -> int:
        length = self._length()
        if length > limit:
            raise GgufFault("corrupt", f"a text of {length} bytes where at most {limit} are allowed")
        return length

    def _length(self) -> int:
        length: int = LENGTH.unpack(self.take(LENGTH.size))[0]
        return length

    def _fill(self, count: int) -> int:
        """Have `count` bytes at the position in the window; returns where in it they start."""
        offset = self.at - self._window_at
        if offset >= 0 and offset + count <= len(self._window):
            return offset
        if count > self.left:
            raise GgufFault("truncated", HEADER_CUT, self.at + count)
        self._read_on(count)
        if len(self._window) < count:  # the file became shorter while it was read
            self.size = self.at + len(self._window)
            raise GgufFault("truncated", "the file became shorter while it was read")
        return 0

    def _read_on(self, count: int) -> None:
        """Make a window at the position that holds `count` bytes, or as many as there are."""
        jumped = self.at - self._window_at > len(self._window) + SMALLEST_READ_BYTES
        self._read_bytes = SMALLEST_READ_BYTES if jumped else min(2 * self._read_bytes, LARGEST_READ_BYTES)
        wanted = min(max(count, self._read_bytes), self.left)
        self._read_budget_bytes -= wanted
        if self._read_budget_bytes < 0:
            raise GgufFault("corrupt", f"more than {READ_BUDGET_BYTES} bytes of header")
        self._file.seek(self.at)
        self._window = self._file.read(wanted)
        self._window_at = self.at
