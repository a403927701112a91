"""Which requests of the log a caller wants: the filters that `/requests` and its page share. Raises ApiError
400."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from framework.api.inputs import bad_value
from framework.api.services import Services
from framework.telemetry.request_log import RequestFilter
from framework.values.units_text import read_whole_number, whole_number_text

# What a list of requests can be cut down to; 30 days are more than the log has of a busy server.
LONGEST_S = 30 * 24 * 3600
STATUS_CLASSES: Mapping[str, tuple[int, int]] = {
    "answered": (100, 399),
    "failed": (400, 599),
    "4xx": (400, 499),
    "5xx": (500, 599),
}
STATUS_PATTERN = f"^([1-5][0-9][0-9]|{'|'.join(STATUS_CLASSES)})$"
STATUS_TEXT = f"a status such as 404, or {', '.join(STATUS_CLASSES)}"


def read_statuses(text: str) -> tuple[int, int] | None:
    """`404`, or a word for several; None for an empty one, which is any."""
    if not text:
        return None
    if not re.fullmatch(STATUS_PATTERN, text):
        raise bad_value("status", text, STATUS_TEXT)
    return STATUS_CLASSES.get(text) or (int(text), int(text))


def read_seconds(name: str, text: str) -> int | None:
    """A number of seconds; None for an empty text, which is any."""
    if not text:
        return None
    seconds = read_whole_number(text, 1, LONGEST_S)
    if seconds is None:
        raise bad_value(name, text, whole_number_text(1, LONGEST_S, "seconds"))
    return seconds


def read_filter(values: Mapping[str, str], services: Services, now: datetime) -> RequestFilter:
    """The filter of `?model=&key=&status=&last_s=&took_s=`."""
    name = values.get("model") or None
    last_s = read_seconds("last_s", values.get("last_s", ""))
    return RequestFilter(
        # A model that is gone may have left requests, and one that never was has none.
        model=None if name is None else services.fleet.resolve(name) or name,
        key=values.get("key") or None,
        statuses=read_statuses(values.get("status", "")),
        since_at=None if last_s is None else now - timedelta(seconds=last_s),
        took_s=read_seconds("took_s", values.get("took_s", "")),
    )
