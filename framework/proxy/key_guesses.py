"""How often keys may be guessed: enough for typos and old settings, too few to find one. One event loop.

Only different wrong keys count, by the address that they come from: a program that goes on with an old key is
no guesser. Beyond the limit an address is told to wait, save for keys that it has already shown to be right:
whoever shares an address with a guesser, as behind a reverse proxy, goes on. A key that is new there waits,
right or wrong, since the answer is what a guesser wants to know. Called by every look at a key.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, IPv6Network, ip_address

from starlette.types import Scope

from framework.proxy.errors import ProxyError
from framework.values.units_text import counted

TRIES = 10
PERIOD_S = 60.0
# Each costs some hundred bytes; beyond so many what was seen longest ago is forgotten.
ADDRESSES = 1024
RIGHT_KEYS = 4096
# Whoever has one IPv6 address has all of its network.
NETWORK_BITS = 64


class KeyGuesses:
    """Wrong keys of the last minute and right keys so far, by address."""

    def __init__(self, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._wrong: OrderedDict[str, OrderedDict[str, float]] = OrderedDict()
        self._right: OrderedDict[tuple[str, str], None] = OrderedDict()

    def judge(self, address: str, digest: str, *, is_right: bool) -> None:
        """Note a key, given as its digest, that came from an address. Raises ProxyError 429."""
        network = network_of(address)
        shown = (network, digest)
        if is_right and shown in self._right:
            self._right.move_to_end(shown)
            return
        now = self._monotonic_s()
        wrong = self._wrong.get(network)
        if wrong is not None:
            _forget(wrong, now - PERIOD_S)
            if len(wrong) >= TRIES and digest not in wrong:
                raise _too_many(next(iter(wrong.values())) + PERIOD_S - now)
        if is_right:
            self._right[shown] = None
            _bound(self._right, RIGHT_KEYS)
            return
        self._wrong.setdefault(network, OrderedDict()).setdefault(digest, now)
        self._wrong.move_to_end(network)
        _bound(self._wrong, ADDRESSES)


def address_of(scope: Scope) -> str:
    """Where a request came from; empty where nobody says."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def network_of(address: str) -> str:
    """The addresses that one guesser can have."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(IPv6Network((int(found), NETWORK_BITS), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)


def _forget(wrong: OrderedDict[str, float], until_s: float) -> None:
    while wrong and next(iter(wrong.values())) <= until_s:
        wrong.popitem(last=False)


def _bound(
    kept: OrderedDict[str, OrderedDict[str, float]] | OrderedDict[tuple[str, str], None], most: int
) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


def _too_many(wait_s: float) -> ProxyError:
    wait = max(1, math.ceil(wait_s))
    message = f"Too many wrong keys came from this address; try again in {counted(wait, 'second')}."
    return ProxyError("rate_limited", message, retry_after_s=wait)
