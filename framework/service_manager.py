"""Tell systemd what this process does: the datagrams of sd_notify, without its library.

Made by app from the environment; without `NOTIFY_SOCKET` nothing is sent. The variables are taken out of the
environment, so that no engine speaks in our name.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field

from framework.values.plain_text import brief

log = logging.getLogger(__name__)

SOCKET_VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLES = ("WATCHDOG_USEC", "WATCHDOG_PID")
ABSTRACT = "@"
MICROSECONDS = 1_000_000
# A status is one line of `systemctl status`; longer ones are cut there without a mark.
STATUS_LENGTH = 200
# Messages that found the socket's buffer full wait for the next one; more than this and nobody reads.
KEPT = 32


@dataclass
class ServiceManager:
    """Who started us and wants to be told. All methods return at once."""

    address: str | None = None
    """A path, or a name of the abstract namespace with a zero byte in front; None: nobody."""
    watchdog_s: float | None = None
    """It expects a sign of life at least this often; None: it does not."""
    _unsent: list[bytes] = field(default_factory=list)

    @classmethod
    def take(cls, environ: MutableMapping[str, str]) -> ServiceManager:
        """Read its variables and remove them."""
        name = environ.pop(SOCKET_VARIABLE, "")
        usec, pid = (environ.pop(variable, "") for variable in WATCHDOG_VARIABLES)
        address = _address(name)
        if address is None:
            return cls()
        is_for_us = not pid or pid == str(os.getpid())
        watched = is_for_us and usec.isascii() and usec.isdecimal() and int(usec) > 0
        return cls(address, int(usec) / MICROSECONDS if watched else None)

    @property
    def is_there(self) -> bool:
        """Whether anybody is told."""
        return self.address is not None

    def ready(self) -> None:
        """The endpoint listens, or a reload is done."""
        self._send("READY=1")

    def reloading(self) -> None:
        """A reload begins; `ready` ends it."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, most_s: float) -> None:
        """The end begins and may take so long."""
        self._send("STOPPING=1", f"EXTEND_TIMEOUT_USEC={int(most_s * MICROSECONDS)}")

    def status(self, text: str) -> None:
        """What is going on, in one line."""
        self._send(f"STATUS={brief(text, STATUS_LENGTH)}")

    def alive(self) -> None:
        """A sign of life for its watchdog."""
        self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if self.address is None:
            return
        self._unsent = [*self._unsent[1 - KEPT :], "\n".join(lines).encode()]
        flags = socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0)
        try:
            with socket.socket(socket.AF_UNIX, flags) as out:
                out.setblocking(False)
                while self._unsent:
                    out.sendto(self._unsent[0], self.address)
                    del self._unsent[0]
        except BlockingIOError:
            return
        except OSError as error:
            # Serving does not depend on being heard.
            self._unsent.clear()
            log.debug("the service manager cannot be told: %s", error)


def _address(name: str) -> str | None:
    """Sockets of other kinds, such as those of virtual machines, are not for processes like this one."""
    if name.startswith(ABSTRACT) and len(name) > 1:
        return "\0" + name[1:]
    return name if name.startswith("/") else None
