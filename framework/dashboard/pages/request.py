"""One request in detail: where its time went, what it was, and its texts where they are kept (01 §3). Pure.

Texts are of clients and models: they are shown as they are and never taken for anything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from framework.dashboard.charts.axes import XTick
from framework.dashboard.formats import share
from framework.dashboard.pages.history import short_time
from framework.dashboard.pages.requests import (
    REQUESTS,
    RunningRow,
    running_row,
    status_look,
)
from framework.dashboard.pages.shell import Shell
from framework.dashboard.states import Tone
from framework.dashboard.updates import Fragment
from framework.dashboard.urls import model_url, request_url
from framework.proxy.records import RequestView
from framework.values.request_record import RequestLogMode, RequestRecord, RequestTexts
from framework.values.units_text import UNKNOWN, percent, rate, tokens

Pattern = Literal["computed", "mapped", "measured"]
TOP, STEP, BOTTOM = 4, 32, 20
TEXT_BASE, BAR_TOP = 11, 16
LEAST_WIDTH_SHARE = 0.003
# A text that begins further right than this would leave a narrow picture; it ends at its step then.
LAST_TEXT_START_SHARE = 0.42


@dataclass(frozen=True)
class TimeStep:
    """One part of the time. Shares are of all of it, `y` are pixels."""

    label: str
    time: str
    pattern: Pattern
    start_share: float
    width_share: float
    text_share: float
    anchor: str
    text_y: int
    bar_y: int


@dataclass(frozen=True)
class TimeWaterfall:
    """Where the time of a request went; each step begins where the last one ended."""

    height: int
    text_y: int
    description: str
    steps: tuple[TimeStep, ...]
    x_ticks: tuple[XTick, ...]


@dataclass(frozen=True)
class Text:
    """A text of a request, under its name."""

    name: str
    text: str


@dataclass(frozen=True)
class EndedRequest:
    """A request that ended, as the log has it."""

    model: str
    model_url: str
    status: int
    tone: Tone
    icon: str
    error: str
    waterfall: TimeWaterfall
    facts: tuple[tuple[str, str], ...]
    asked: tuple[Text, ...]
    answered: tuple[Text, ...]
    is_cut: bool
    no_texts: str
    """Why there are no texts; empty where there are."""


@dataclass(frozen=True)
class RequestBody:
    """The request: served now, ended, or gone without a trace (neither)."""

    id: str
    at: datetime | None
    running: RunningRow | None
    ended: EndedRequest | None
    json_url: str


@dataclass(frozen=True)
class RequestPage:
    """Everything on `/requests/ID`."""

    shell: Shell
    body: RequestBody


def running_body(view: RequestView, now: datetime) -> RequestBody:
    """A request that is served now."""
    row = running_row(view, now, REQUESTS)
    return RequestBody(view.id, view.at, row, None, _json_url(view.id))


def ended_body(record: RequestRecord, mode: RequestLogMode) -> RequestBody:
    """A request that ended."""
    tone, icon = status_look(record.status)
    texts = record.texts
    ended = EndedRequest(
        model=record.model or "",
        model_url=model_url(record.model) if record.model else "",
        status=record.status,
        tone=tone,
        icon=icon,
        error=record.error or "",
        waterfall=time_waterfall(record),
        facts=tuple(_facts(record)),
        asked=tuple(_texts(texts.asked)) if texts is not None else (),
        answered=tuple(_texts(texts.answered)) if texts is not None else (),
        is_cut=texts is not None and texts.is_cut,
        no_texts=_no_texts(texts, mode),
    )
    return RequestBody(record.id, record.at, None, ended, _json_url(record.id))


def gone_body(request_id: str) -> RequestBody:
    """A request that ended and was not kept."""
    return RequestBody(request_id, None, None, None, _json_url(request_id))


def request_fragment(body: RequestBody) -> Fragment:
    """All of it: a request that is served has little to say."""
    return Fragment("request", "_request.html", "body", body)


def time_waterfall(record: RequestRecord) -> TimeWaterfall:
    """Queue, first token, answer: by the clock of the manager, so that they add up to the total."""
    total = max(record.total_s, 0.0)
    queued = min(max(record.queue_s, 0.0), total)
    first = total if record.first_token_s is None else min(max(record.first_token_s, queued), total)
    parts: list[tuple[str, Pattern, float, float]] = [("waited for an instance", "computed", 0.0, queued)]
    if record.first_token_s is None:
        parts.append(("at the engine, without a first token", "mapped", queued, total))
    else:
        parts.append(("to the first token: the prompt", "mapped", queued, first))
        parts.append(("the answer", "measured", first, total))
    steps = tuple(_step(number, *part, total) for number, part in enumerate(parts))
    end = TOP + STEP * len(steps)
    return TimeWaterfall(
        height=end + BOTTOM,
        text_y=end + BOTTOM - 4,
        description="; ".join(f"{step.label} {step.time}" for step in steps)
        + f". Total {short_time(total)}.",
        steps=steps,
        x_ticks=(XTick(0.0, "0 s", "start"), XTick(1.0, short_time(total), "end")),
    )


def _step(number: int, label: str, pattern: Pattern, begun: float, ended: float, total: float) -> TimeStep:
    start, end = share(begun, total), share(ended, total)
    late = start > LAST_TEXT_START_SHARE
    return TimeStep(
        label=label,
        time=short_time(ended - begun),
        pattern=pattern,
        start_share=min(start, 1 - LEAST_WIDTH_SHARE),
        width_share=max(end - start, LEAST_WIDTH_SHARE),
        text_share=1.0 if late else start,
        anchor="end" if late else "start",
        text_y=TOP + STEP * number + TEXT_BASE,
        bar_y=TOP + STEP * number + BAR_TOP,
    )


def _facts(record: RequestRecord) -> Iterable[tuple[str, str]]:
    """Named facts in words, with their units."""
    drafted = record.drafted or 0
    yield "Route", record.route
    yield "Key", record.key or UNKNOWN
    yield "Instance", record.instance or UNKNOWN
    yield "Stream", UNKNOWN if record.stream is None else "yes" if record.stream else "no"
    yield "Sent twice", "yes, its first instance broke off" if record.retried else "no"
    yield "Stopped by", record.stop_reason or UNKNOWN
    yield "Prompt", tokens(record.prompt_tokens)
    yield "From the cache", tokens(record.cached_tokens)
    yield "Generated", tokens(record.generated_tokens)
    yield "Prompt, by the engine", _engine(record.prompt_s, record.prompt_tokens_per_s)
    yield "Generation, by the engine", _engine(record.generation_s, record.generation_tokens_per_s)
    yield "Drafted", tokens(drafted) if drafted else UNKNOWN
    yield "Accepted", percent((record.accepted or 0) / drafted) if drafted else UNKNOWN


def _engine(seconds: float | None, speed: float | None) -> str:
    return UNKNOWN if seconds is None else f"{short_time(seconds)}, {rate(speed)}"


def _texts(named: Mapping[str, Any]) -> Iterable[Text]:
    """Texts as they are, everything else as JSON that can be read."""
    for name, value in named.items():
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        if text:
            yield Text(str(name), text)


def _no_texts(texts: RequestTexts | None, mode: RequestLogMode) -> str:
    if texts is not None:
        return ""
    if mode == "full":
        return "What was asked and answered was not kept: it had no text, or ended before texts were kept."
    return (
        'What was asked and answered is not kept; request_log = "full" under [server] keeps it from then on.'
    )


def _json_url(request_id: str) -> str:
    return f"/api/v1{request_url(request_id)}"
