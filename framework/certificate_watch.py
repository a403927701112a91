"""Tell before the listener's certificate ends, and when it has. Called by app.

Told once for each stage of each certificate: renewals that fail do so for weeks, and an event an hour would
hide everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from framework.certificate_dates import certificate_reason
from framework.telemetry.events import EventLog, utc_now
from framework.tls import Certificate

EVERY_S = 60.0


class CertificateWatch:
    """Watches what the listener shows. Belongs to one event loop."""

    def __init__(
        self, certificate: Certificate, events: EventLog, *, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._certificate = certificate
        self._events = events
        self._now = now
        self._told: tuple[str, datetime] | None = None

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(EVERY_S)

    def look(self) -> None:
        """Tell what has to be told now."""
        tls, end = self._certificate.tls, self._certificate.ends_at
        if tls is None or end is None:
            return
        reason = certificate_reason(tls.certificate, end, self._now())
        stage = (reason.code, end) if reason is not None else None
        if stage == self._told:
            return
        if reason is not None:
            self._events.record("certificate", reason.message, reason=reason)
        else:
            self._events.record("certificate", f"the certificate was renewed: it ends on {end:%Y-%m-%d}")
        self._told = stage
