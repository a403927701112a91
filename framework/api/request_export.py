"""Requests of the log as CSV, for spreadsheets. Pure.

Names of models, keys and unknown paths come from outside, and a spreadsheet runs what begins like a formula:
such a text gets an apostrophe in front, which spreadsheets hide.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from framework.api.shapes import kept_request_json
from framework.telemetry.tables import KeptRequest

COLUMNS = (
    *("seq", "id", "at", "model", "key", "route", "status", "stop_reason", "error"),
    *("queue_s", "first_token_s", "total_s", "prompt_s", "generation_s"),
    *("prompt_tokens", "cached_tokens", "generated_tokens", "drafted", "accepted"),
    *("prompt_tokens_per_s", "generation_tokens_per_s"),
    *("replica", "instance", "stream", "retried"),
)
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def requests_csv(kept: Iterable[KeptRequest]) -> str:
    """A line of names, then a line for each request; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for one in kept:
        document = kept_request_json(one)
        writer.writerow([_cell(document[name]) for name in COLUMNS])
    return text.getvalue()


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value
