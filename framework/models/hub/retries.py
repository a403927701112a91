"""When the hub is asked again after it failed, and how long before (02 §10.5).

Called by hub.download for listings and by hub.transfer for files.
"""

from __future__ import annotations

from collections.abc import Callable

from framework.models.hub import refusals
from framework.models.hub.client import HubClient
from framework.models.hub.facts import RepoListing
from framework.models.hub.wire import Patience
from framework.values.reason import Refused

# Somebody waits for a listing, where a download may take its time.
LISTING_TRIES = 3


def patient_listing(client: HubClient, patience: Patience, sleep: Callable[[float], None]) -> RepoListing:
    """The listing of a repository, also where the hub wants a short pause first. Raises Refused."""
    waits = list(patience.retry_waits_s[:LISTING_TRIES])
    while True:
        try:
            return client.listing()
        except Refused as refusal:
            if asked_wait_s(refusal) is None:
                raise
            pause(refusal, waits, patience, sleep)


def pause(refusal: Refused, waits: list[float], patience: Patience, sleep: Callable[[float], None]) -> None:
    """Wait before the next try, for the first of `waits` at least.

    Raises the refusal where another try is of no use, or where there were enough of them.
    """
    reason, asked_s = refusal.failure.reason, asked_wait_s(refusal) or 0.0
    passes = refusal.failure.retryable and reason.code == "download_failed"
    passes = passes and reason.evidence.get("cause") != refusals.CHANGED
    if not passes or not waits or asked_s > patience.rate_limit_s:
        raise refusal
    sleep(max(asked_s, waits.pop(0)))


def asked_wait_s(refusal: Refused) -> float | None:
    """The pause that the hub asked for."""
    asked = refusal.failure.reason.evidence.get("retry_after_s")
    return None if asked is None else float(asked)
