"""Wait for something that another process brings about, with a limit and a readable failure."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from itertools import count
from typing import TypeVar

T = TypeVar("T")
POLL_S = 0.02
FIRST_PORT, PORTS_OF_A_WORKER, WORKERS = 12000, 2000, 10
# Runs of the suite at the same time begin at different places.
_drawn = count(os.getpid() * 7)


def wait_until(predicate: Callable[[], T], timeout_s: float = 30.0, what: str = "the condition") -> T:
    """The first true value of `predicate`. Fails with `what` and the last value when time is up."""
    deadline = time.monotonic() + timeout_s
    while not (value := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s for {what}; last seen: {value!r}")
        time.sleep(POLL_S)
    return value


async def eventually(predicate: Callable[[], T], timeout_s: float = 30.0, what: str = "the condition") -> T:
    """As `wait_until`, for tests that share their event loop with what they wait for."""
    deadline = time.monotonic() + timeout_s
    while not (value := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s for {what}; last seen: {value!r}")
        await asyncio.sleep(POLL_S)
    return value


def unused_port() -> int:
    """A loopback port that nobody listens on at this moment, and that no other test process is given.

    It lies below the range that outgoing connections draw from, so that none of them takes it before it is
    used; each test process draws from its own part of what is left.
    """
    worker = int("0" + os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw"))
    first = FIRST_PORT + PORTS_OF_A_WORKER * (worker % WORKERS)
    for _ in range(PORTS_OF_A_WORKER):
        port = first + next(_drawn) % PORTS_OF_A_WORKER
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no port is free from {first} to {first + PORTS_OF_A_WORKER - 1}")
