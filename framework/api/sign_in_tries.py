"""How often somebody may try a key on the sign-in page: enough for typos, too few to guess. One event loop.

Only wrong keys count, by the address that they come from, so that nobody is kept out by the tries of others.
Behind a reverse proxy all visitors have its address: they wait together, a minute at most.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from framework.proxy.recent_requests import RecentRequests

TRIES = 10
PERIOD_S = 60.0
# Addresses cost a line of memory each; beyond so many the one that was seen longest ago is forgotten.
ADDRESSES = 1024


class SignInTries:
    """Wrong keys of the last minute, by address."""

    def __init__(self, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._wrong: OrderedDict[str, RecentRequests] = OrderedDict()

    def wait_s(self, address: str) -> float:
        """Seconds until this address may try again; 0 when it may now."""
        wrong = self._wrong.get(address)
        return wrong.wait_s(TRIES, PERIOD_S, self._monotonic_s()) if wrong is not None else 0.0

    def note_wrong(self, address: str) -> None:
        """A wrong key came from this address."""
        self._wrong.setdefault(address, RecentRequests()).add(self._monotonic_s())
        self._wrong.move_to_end(address)
        if len(self._wrong) > ADDRESSES:
            self._wrong.popitem(last=False)
