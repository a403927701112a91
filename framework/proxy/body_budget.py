"""How much memory the bodies of all requests may take together (08 §8.8 bounds only a single one).

One budget per endpoint, one share per request: it grows while the body is read and is given back when the
request ends, since a request that waits for its model still holds what it asked. Refuses with 503, never
waits: a body that waits for room would hold what it has.
"""

from __future__ import annotations

from framework.proxy.errors import ProxyError
from framework.runtime.refusals import RETRY_UNKNOWN_S

KIB = 2**10
# Several of the largest bodies at once are usual with images; many of them are an attack or a mistake.
LARGEST_BODIES = 4
# Not counted, so that an ordinary chat is served beside large bodies; the limit of connections bounds it.
FREE_BYTES = 64 * KIB


class BodyBudget:
    """What all requests hold. Belongs to one event loop."""

    def __init__(self) -> None:
        self.held_bytes = 0

    def share(self) -> BodyShare:
        """The share of one request, empty so far."""
        return BodyShare(self)


class BodyShare:
    """What one request holds of the budget."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self._held_bytes = 0
        self.body_bytes = 0
        """How large the body is, as far as it has come."""

    def grow(self, body_bytes: int, *, largest_bytes: int) -> None:
        """The body has this size now; `largest_bytes` is what one body may have.

        Raises ProxyError 503 when there is no room.
        """
        self.body_bytes = body_bytes
        wanted = max(0, body_bytes - FREE_BYTES)
        others = self._budget.held_bytes - self._held_bytes
        if wanted and others + wanted > LARGEST_BODIES * largest_bytes:
            raise ProxyError(
                "server_busy",
                "Too many large requests are being served; send this one again later.",
                retry_after_s=RETRY_UNKNOWN_S,
                # The rest of the body is not read; the connection cannot be used again.
                headers={"connection": "close"},
            )
        self._budget.held_bytes = others + wanted
        self._held_bytes = wanted

    def give_back(self) -> None:
        """The request has ended."""
        self._budget.held_bytes -= self._held_bytes
        self._held_bytes = 0
