"""A datagram socket in the place of systemd's, which keeps what a service says."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

LARGEST = 4096


@dataclass
class StandIn:
    """`name` goes into NOTIFY_SOCKET."""

    name: str
    inbox: socket.socket = field(repr=False)
    said: list[dict[str, str]] = field(default_factory=list)

    def until(self, variable: str, containing: str = "", timeout_s: float = 30.0) -> dict[str, str]:
        """The first message from here on that sets the variable to a value with this text."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            self.inbox.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                text = self.inbox.recv(LARGEST).decode()
            except TimeoutError:
                break
            message = dict(line.partition("=")[::2] for line in text.split("\n"))
            self.said.append(message)
            if containing in message.get(variable, "\0"):
                return message
        raise AssertionError(f"no {variable} with {containing!r}; said: {self.said}")


@contextmanager
def stand_in(name: str) -> Iterator[StandIn]:
    """Listen at a path, or at a name of the abstract namespace (`@...`)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox:
        inbox.bind("\0" + name[1:] if name.startswith("@") else name)
        yield StandIn(name, inbox)
