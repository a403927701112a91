"""Loopback ports promised to instances, so that no two of ours get the same one (06 §8.1)."""

from __future__ import annotations

import socket

# A kernel that hands out a promised number again does so rarely; this many tries never fail in practice.
TRIES = 50


class NoFreePort(Exception):
    """Every try gave a port that is already promised."""

    def __str__(self) -> str:
        return f"no free loopback port in {TRIES} tries"


class PortTable:
    """Numbers in use by our instances until their processes are gone."""

    def __init__(self) -> None:
        self._promised: set[int] = set()

    def reserve(self) -> int:
        """A port that is free now and promised to nobody. Another program may still take it (rung P)."""
        for _ in range(TRIES):
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                probe.bind(("127.0.0.1", 0))
                port: int = probe.getsockname()[1]
            if port not in self._promised:
                self._promised.add(port)
                return port
        raise NoFreePort

    def claim(self, port: int) -> None:
        """A process of an earlier manager has the port."""
        self._promised.add(port)

    def release(self, port: int) -> None:
        """The process that had the port is gone."""
        self._promised.discard(port)
