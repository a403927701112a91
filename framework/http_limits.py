"""What a client may take of the listener before anybody knows who it is.

Made by listener, read by http_connection.
Bounds that depend on the manifest or the route are kept where the request is served.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass, replace

KIB = 2**10
# One handshake under way for so many connections is far more than clients need.
HANDSHAKES_SHARE = 8
# A request to an instance holds a second descriptor, and log files and pipes need theirs.
FILES_PER_CONNECTION = 2


@dataclass(frozen=True)
class HttpLimits:
    """Sizes are bytes, times seconds."""

    head_bytes: int = 64 * KIB
    """Request line and headers together, and trailers. Browsers stay below 16 KiB with all their cookies."""
    head_timeout_s: float = 20.0
    """From the first byte of a head, or a fresh connection, to its last byte: a slow mobile line needs 5."""
    connections: int = 4096
    """Open at once; more are told 503 and closed. The heads of all of them fit into 256 MiB."""
    handshakes: int = 512
    """TLS handshakes at once, besides connections. One takes milliseconds, over a slow line hundreds; beyond
    this the oldest ends, so that those who stall keep nobody out."""
    pipelined: int = 16
    """Requests of one connection that wait behind the one being answered. Programs that use it send a few."""
    linger_s: float = 1.0
    """After a refusal what still comes is thrown away for so long: closing at once would make the client's
    system drop the answer unread."""


def limits_of_process() -> HttpLimits:
    """The limits, with no more connections than the open files of this process allow (`ulimit -n`)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return HttpLimits()
    return capped(HttpLimits(), soft)


def capped(limits: HttpLimits, open_files: int) -> HttpLimits:
    """As `limits`, for a process that may have so many files open. Pure."""
    connections = max(1, min(limits.connections, open_files // FILES_PER_CONNECTION))
    handshakes = max(1, min(limits.handshakes, connections // HANDSHAKES_SHARE))
    return replace(limits, connections=connections, handshakes=handshakes)
