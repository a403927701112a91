"""The numbers beside an answer: times of the endpoint, speeds and drafts of the engine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.proxy.usage import count
from framework.values.request_record import RequestRecord
from framework.values.units_text import duration, percent, rate, tokens

MS_PER_S = 1000


def numbers_of(record: RequestRecord, timings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Names and values with their units; what nobody measured is left out."""
    found = [("Queue", short_time(record.queue_s))]
    if record.first_token_s is not None:
        found.append(("First token", short_time(record.first_token_s)))
    if record.prompt_tokens is not None:
        cached = f", {record.cached_tokens:,} of them cached" if record.cached_tokens else ""
        found.append(("Prompt", f"{tokens(record.prompt_tokens)}{cached}{_speed(timings, 'prompt')}"))
    if record.generated_tokens is not None:
        found.append(("Answer", f"{tokens(record.generated_tokens)}{_speed(timings, 'predicted')}"))
    if record.drafted:
        accepted = record.accepted or 0
        part = percent(accepted / record.drafted)
        found.append(("Drafts", f"{tokens(record.drafted)}, {accepted:,} accepted ({part})"))
    found.append(("Total", short_time(record.total_s)))
    return tuple(found)


def short_time(seconds: float) -> str:
    """`0 ms`, `84 ms`, `1.3 s`: as a wait for an answer is felt."""
    whole_ms = round(seconds * MS_PER_S)
    return f"{whole_ms} ms" if whole_ms < MS_PER_S else duration(seconds)


def _speed(timings: Mapping[str, Any], part: str) -> str:
    """A speed where it was measured over more than nothing: one token, or none, tells no speed."""
    speed, over = timings.get(f"{part}_per_second"), count(timings, f"{part}_n")
    if not isinstance(speed, int | float) or not over or over < 2 or not 0 < speed < 1e7:
        return ""
    return f", {rate(float(speed))}"
