"""Reading server-sent events as they arrive (08 §6.1-6.2). Pure: bytes in, payloads of `data:` out.

Called by the generation driver with whatever the socket gave. Characters that are split over chunks stay
whole because a line is only looked at when its end is there. Refuses lines and events above a limit.
"""

from __future__ import annotations

from framework.proxy.errors import ProxyError

DATA = b"data:"
START = b"data: "
END = b"\n\n"
MIB = 2**20


class SseReader:
    """Splits one stream into event payloads. Time is linear in the bytes, memory bounded by the limit."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._lines: list[bytes] = []
        self._lines_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Payloads of the events that this chunk completes. Raises ProxyError `upstream_protocol_error`."""
        if chunk.endswith(END) and not self._parts and not self._lines and len(chunk) <= self._limit:
            payloads = whole_events(chunk)
            if payloads is not None:
                return payloads
        return self._feed_lines(chunk)

    def _feed_lines(self, chunk: bytes) -> list[bytes]:
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        lines = (b"".join((*self._parts, chunk)) if self._parts else chunk).split(b"\n")
        self._parts, self._parts_bytes = [], 0
        self._keep(lines.pop())
        payloads: list[bytes] = []
        for line in lines:
            self._take(line, payloads)
        return payloads

    def finish(self) -> list[bytes]:
        """Payloads of what the end of the body completes: a last line or event without its line end."""
        payloads: list[bytes] = []
        for line in (b"".join(self._parts), b""):
            self._take(line, payloads)
        self._parts, self._parts_bytes = [], 0
        return payloads

    def _keep(self, part: bytes) -> None:
        self._parts_bytes += len(part)
        if self._parts_bytes > self._limit:
            raise self._too_long("line")
        if part:
            self._parts.append(part)

    def _take(self, line: bytes, payloads: list[bytes]) -> None:
        if len(line) > self._limit:
            raise self._too_long("line")
        if line.endswith(b"\r"):
            line = line[:-1]
        if line.startswith(DATA):
            self._add(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and self._lines:
            payloads.append(b"\n".join(self._lines))
            self._lines, self._lines_bytes = [], 0

    def _add(self, data: bytes) -> None:
        # The joining LF counts too, so that empty lines without end cannot pile up.
        self._lines_bytes += len(data) + 1
        if self._lines_bytes > self._limit + 1:
            raise self._too_long("event")
        self._lines.append(data)

    def _too_long(self, what: str) -> ProxyError:
        return ProxyError(
            "upstream_protocol_error",
            f"The engine sent a {what} of more than {self._limit / MIB:g} MiB; the stream was given up.",
        )


def whole_events(chunk: bytes) -> list[bytes] | None:
    """The payloads of a chunk that is nothing but events of one `data: ` line each, as engines write them.

    None for any other, which has to be read line by line.
    """
    if b"\r" in chunk:
        return None
    events = chunk[: -len(END)].split(END)
    for event in events:
        if not event.startswith(START) or b"\n" in event:
            return None
    return [event[len(START) :] for event in events]
