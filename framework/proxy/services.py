"""What the endpoint works with, made once by the assembly and handed to every handler."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from framework.proxy.allowances import Allowances
from framework.proxy.body_budget import BodyBudget
from framework.proxy.fleet import Fleet
from framework.proxy.inflight import InFlight
from framework.proxy.key_guesses import KeyGuesses
from framework.proxy.limits import ProxyLimits
from framework.proxy.records import OnFinished, log_record
from framework.proxy.upstream import Upstream
from framework.reconcile.current import CurrentManifest
from framework.telemetry.events import utc_now

ID_BYTES = 12


def new_request_id() -> str:
    """An id that nobody can guess: knowing it is what allows a cancel."""
    return "req-" + secrets.token_hex(ID_BYTES)


@dataclass
class ProxyServices:
    """`current` is read at every request, so that an applied manifest acts on the next one."""

    fleet: Fleet
    current: CurrentManifest
    limits: ProxyLimits = field(default_factory=ProxyLimits)
    clock: Callable[[], float] = time.monotonic
    """Seconds for durations; only differences count."""
    now: Callable[[], datetime] = utc_now
    new_id: Callable[[], str] = new_request_id
    on_finished: OnFinished = log_record
    requests: InFlight = field(default_factory=InFlight)
    bodies: BodyBudget = field(default_factory=BodyBudget)
    allowances: Allowances = field(default_factory=Allowances)
    guesses: KeyGuesses = field(default_factory=KeyGuesses)
    upstream: Upstream = field(init=False)

    def __post_init__(self) -> None:
        self.upstream = Upstream(self.limits)

    async def close(self) -> None:
        """Give back connections; the endpoint is not used afterwards."""
        self.upstream.close()
