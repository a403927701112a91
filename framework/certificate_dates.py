"""Until when a certificate holds, and what is said before and after (01 §1 `server.tls`). Pure.

The system's TLS library tells dates only of certificates that it verifies, so the few fields before them are
read here. Used by the listener, by `paddock doctor` and by `/metrics`.
"""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from framework.values.reason import Reason

# Renewals are made a month before the end; two weeks before it one has failed.
WARN_BEFORE = timedelta(days=14)
BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
VERSION, UTC_TIME, GENERALIZED_TIME = 0xA0, 0x17, 0x18
# RFC 5280: two digits below this are of the century that has begun.
PIVOT = 50
LONG_LENGTH, MOST_LENGTH_BYTES = 0x80, 4


def ends_at(pem: str) -> datetime | None:
    """When the first certificate of a chain ends that ends first; None where that cannot be read."""
    try:
        ends = [_end_of(ssl.PEM_cert_to_DER_cert(block)) for block in BLOCK.findall(pem)]
    except (ValueError, IndexError):
        return None
    return min(ends, default=None)


def certificate_reason(path: Path, end: datetime | None, now: datetime) -> Reason | None:
    """Why the certificate has to be renewed; None while that has time, or nobody knows."""
    if end is None or now < end - WARN_BEFORE:
        return None
    day, evidence = f"{end:%Y-%m-%d %H:%M} UTC", {"path": str(path), "ends_at": end.isoformat()}
    if now >= end:
        return Reason(
            "certificate_expired",
            f"The certificate {path} ended on {day}: clients refuse the connection.",
            "Renew it and put the new files in the same place; they are shown by themselves.",
            "error",
            evidence,
        )
    days = (end - now).days
    left = "today" if days == 0 else "tomorrow" if days == 1 else f"in {days} days"
    return Reason(
        "certificate_expires",
        f"The certificate {path} ends {left}, on {day}; clients refuse the connection then.",
        "Renew it and put the new files in the same place; they are shown by themselves.",
        "warning",
        evidence,
    )


def _end_of(der: bytes) -> datetime:
    """The second date of `validity`. Raises ValueError or IndexError for what is no certificate."""
    _, begin, _ = _element(der, 0)
    _, at, _ = _element(der, begin)
    tag, _, end = _element(der, at)
    at = end if tag == VERSION else at
    for _field in ("serial number", "algorithm", "issuer"):
        at = _element(der, at)[2]
    _, begin, _ = _element(der, at)
    tag, begin, end = _element(der, _element(der, begin)[2])
    text = der[begin:end].decode("ascii")
    if tag == UTC_TIME:
        text = ("20" if int(text[:2]) < PIVOT else "19") + text
    elif tag != GENERALIZED_TIME:
        raise ValueError("no date")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Tag, begin and end of the content of the element at a place."""
    tag, length, begin = der[at], der[at + 1], at + 2
    if length >= LONG_LENGTH:
        count = length - LONG_LENGTH
        if not 0 < count <= MOST_LENGTH_BYTES:
            raise ValueError("no length")
        length, begin = int.from_bytes(der[begin : begin + count]), begin + count
    if begin + length > len(der):
        raise ValueError("cut off")
    return tag, begin, begin + length
