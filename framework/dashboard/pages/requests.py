"""The Requests page: what is served now, what was served, and how fast, from the same rows (01 §3). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from framework.dashboard.charts.histogram import bin_name, bins_of, histogram
from framework.dashboard.pages.figures import FigureRow, Figures, FigureTable, figures_fragment
from framework.dashboard.pages.history import short_time
from framework.dashboard.pages.ids import element_id
from framework.dashboard.pages.shell import Shell
from framework.dashboard.states import Tone
from framework.dashboard.updates import Feed, Fragment
from framework.dashboard.urls import model_url, request_url, with_query
from framework.proxy.records import Phase, RequestView
from framework.telemetry.tables import KeptRequest
from framework.values.reason import Reason
from framework.values.request_record import RequestLogMode
from framework.values.units_text import UNKNOWN, count, counted, duration, rate

REQUESTS = "/requests"
PAGE_ROWS = 200
EXPORT_ROWS = 1000
NAME_LIMIT = 200
BAD_REQUEST, CLIENT_LEFT, SERVER_ERROR = 400, 499, 500
STATUSES = (
    ("", "any status"),
    ("answered", "answered"),
    ("failed", "any error"),
    ("4xx", "4xx: refused, or left"),
    ("5xx", "5xx: failed here"),
)
WINDOWS = (("", "any time"), ("900", "15 minutes"), ("3600", "1 hour"), ("86400", "24 hours"))
TIMES = (("", "any time"), ("1", "1 second"), ("10", "10 seconds"), ("60", "1 minute"), ("300", "5 minutes"))
FILTERS = ("model", "key", "status", "last_s", "took_s")
PHASES: Mapping[Phase, tuple[str, Tone, str]] = {
    "waiting": ("waits for an instance", "wait", "clock"),
    "sent": ("at the engine, no token yet", "busy", "spin"),
    "streaming": ("is answered", "ok", "spin"),
}
SPEED_UNIT = "tokens/s"


@dataclass(frozen=True)
class RequestQuery:
    """The filter of a page as texts of its address; `before` shows requests before that place, 0: newest."""

    model: str = ""
    key: str = ""
    status: str = ""
    last_s: str = ""
    took_s: str = ""
    before: int = 0

    @property
    def live(self) -> bool:
        """Whether new requests belong on this page."""
        return self.before == 0

    @property
    def filters(self) -> dict[str, str]:
        """By the names that the API has for them."""
        return {name: getattr(self, name) for name in FILTERS}

    def url(self, *, before: int = 0) -> str:
        """The page with this filter, from `before` on."""
        return with_query(REQUESTS, {**self.filters, "before": before or ""})

    def export_url(self, form: str) -> str:
        """The same requests for programs."""
        asked = {"before": self.before or "", "limit": EXPORT_ROWS, "format": form}
        return with_query("/api/v1/requests", {**self.filters, **asked})


@dataclass(frozen=True)
class Choice:
    """An entry of a list to choose from."""

    value: str
    label: str
    chosen: bool


@dataclass(frozen=True)
class RequestRow:
    """One request that ended. Texts have units; what is not known is a dash."""

    seq: int
    url: str
    at: datetime
    model: str
    model_url: str
    key: str
    route: str
    status: int
    tone: Tone
    icon: str
    error: str
    stop_reason: str
    queue: str
    first_token: str
    total: str
    prompt_tokens: str
    cached_tokens: str
    generated_tokens: str
    prompt_speed: str
    generation_speed: str


@dataclass(frozen=True)
class RequestList:
    """Rows, newest first; `filtered` and `mode` tell an empty list what to say."""

    rows: tuple[RequestRow, ...]
    filtered: bool
    mode: RequestLogMode


@dataclass(frozen=True)
class RunningAge:
    """What moves every second of a request that is served."""

    id: str
    age: str
    tokens: str


NO_AGE = RunningAge("", "", "")


@dataclass(frozen=True)
class RunningRow:
    """A request that is served now. `back` is where its button leads back to."""

    id: str
    url: str
    at: datetime
    model: str
    model_url: str
    replica: str
    key: str
    route: str
    phase: str
    tone: Tone
    icon: str
    age: RunningAge
    cancel_url: str
    back: str


@dataclass(frozen=True)
class RunningList:
    """All requests that are served now and pass the filter, oldest first."""

    rows: tuple[RunningRow, ...]


@dataclass(frozen=True)
class RequestsPage:
    """Everything on `/requests`; `older_url` and `newest_url` are empty where there is nothing to go to."""

    shell: Shell
    query: RequestQuery
    models: tuple[str, ...]
    keys: tuple[str, ...]
    statuses: tuple[Choice, ...]
    windows: tuple[Choice, ...]
    times: tuple[Choice, ...]
    faults: tuple[Reason, ...]
    running: RunningList
    speeds: Figures
    requests: RequestList
    older_url: str
    newest_url: str
    json_url: str
    csv_url: str


def parse_request_query(values: Mapping[str, str], before: int = 0) -> RequestQuery:
    """The filter of an address that was checked."""
    names = {name: values.get(name, "")[:NAME_LIMIT] for name in FILTERS}
    return RequestQuery(**names, before=before)


def requests_page(
    shell: Shell,
    query: RequestQuery,
    kept: Sequence[KeptRequest],
    running: Iterable[RequestView],
    now: datetime,
    mode: RequestLogMode,
    *,
    models: Iterable[str] = (),
    keys: Iterable[str] = (),
    faults: tuple[Reason, ...] = (),
    older: bool = False,
) -> RequestsPage:
    """The whole page; `kept` are the rows that it shows, oldest first."""
    return RequestsPage(
        shell=shell,
        query=query,
        models=tuple(models),
        keys=tuple(keys),
        statuses=_choices(STATUSES, query.status, query.status),
        windows=_choices(WINDOWS, query.last_s, f"{query.last_s} s"),
        times=_choices(TIMES, query.took_s, f"{query.took_s} s"),
        faults=faults,
        running=running_list(running, now, query.url()),
        speeds=speeds_of(kept),
        requests=RequestList(
            tuple(request_row(one) for one in reversed(kept)), any(query.filters.values()), mode
        ),
        older_url=query.url(before=kept[0].seq) if older and kept else "",
        newest_url="" if query.live else query.url(),
        json_url=query.export_url("json"),
        csv_url=query.export_url("csv"),
    )


def request_row(kept: KeptRequest) -> RequestRow:
    """One request that ended."""
    record = kept.record
    tone, icon = status_look(record.status)
    return RequestRow(
        seq=kept.seq,
        url=request_url(record.id),
        at=record.at,
        model=record.model or "",
        model_url=model_url(record.model) if record.model else "",
        key=record.key or "",
        route=record.route,
        status=record.status,
        tone=tone,
        icon=icon,
        error=record.error or "",
        stop_reason=record.stop_reason or UNKNOWN,
        # Only what goes to a model can wait for one.
        queue=short_time(record.queue_s) if record.model else UNKNOWN,
        first_token=short_time(record.first_token_s),
        total=short_time(record.total_s),
        prompt_tokens=count(record.prompt_tokens),
        cached_tokens=count(record.cached_tokens),
        generated_tokens=count(record.generated_tokens),
        prompt_speed=rate(record.prompt_tokens_per_s),
        generation_speed=rate(record.generation_tokens_per_s),
    )


def status_look(status: int) -> tuple[Tone, str]:
    """How a status looks."""
    if status < BAD_REQUEST:
        return "ok", "check"
    if status == CLIENT_LEFT:
        return "idle", "circle"
    return ("bad", "cross") if status >= SERVER_ERROR else ("wait", "warn")


def speeds_of(kept: Sequence[KeptRequest]) -> Figures:
    """How fast the requests of the list were generated: as many as have a speed, no more and no less."""
    speeds = [one.record.generation_tokens_per_s for one in kept]
    known = sum(speed is not None for speed in speeds)
    bins = bins_of(speeds)
    empty = "No request of the list has a speed: its engine told none."
    chart = histogram("speeds-chart", "Speed", "tokens/s of one answer", bins, "requests", empty=empty)
    rows = tuple(FigureRow(bin_name(one, SPEED_UNIT), (f"{one.count:,}",)) for one in bins)
    return Figures(
        "speeds",
        "Generation speed",
        f"{known:,} of the {_requests(len(kept))} in the list have a speed" if known else empty,
        (chart,) if known else (),
        FigureTable("speeds-table", "Requests by generation speed", "Speed", ("Requests",), rows),
    )


def running_list(views: Iterable[RequestView], now: datetime, back: str) -> RunningList:
    """The requests that are served now."""
    return RunningList(tuple(running_row(view, now, back) for view in views))


def running_row(view: RequestView, now: datetime, back: str) -> RunningRow:
    """One request that is served."""
    element = element_id("run", view.id)
    phase, tone, icon = PHASES[view.phase]
    tokens = f"about {counted(view.tokens, 'token')}" if view.tokens else UNKNOWN
    return RunningRow(
        id=element,
        url=request_url(view.id),
        at=view.at,
        model=view.model,
        model_url=model_url(view.model) if view.model else "",
        replica=f"replica {view.replica}" if view.replica else "",
        key=view.key or "",
        route=view.route,
        phase=phase,
        tone=tone,
        icon=icon,
        age=RunningAge(
            f"{element}-age", duration(float(max(0, int((now - view.at).total_seconds())))), tokens
        ),
        cancel_url=f"{request_url(view.id)}/cancel",
        back=back,
    )


def requests_fragments(page: RequestsPage) -> tuple[Fragment, ...]:
    """The list grows at its top; the filter form is never replaced under the hands of its user."""
    rows = page.requests.rows
    items = tuple((row.seq, row) for row in rows)
    feed = Feed("request-rows", "afterbegin", "_request_row.html", "row", items, element="tbody")
    listed = Fragment(
        "requests",
        "_request_list.html",
        "requests",
        page.requests,
        outline=(page.requests.filtered, page.requests.mode, bool(rows)),
        feed=feed,
    )
    return (running_fragment(page.running), figures_fragment(page.speeds), listed)


def running_fragment(running: RunningList) -> Fragment:
    """A row is replaced when its phase changes, so that nobody loses the button under their finger."""
    parts = tuple(
        Fragment(
            row.id,
            "_running_row.html",
            "row",
            row,
            outline=replace(row, age=NO_AGE),
            parts=(Fragment(row.age.id, "_running_age.html", "age", row.age),),
        )
        for row in running.rows
    )
    return Fragment(
        "running",
        "_running.html",
        "running",
        running,
        outline=tuple(row.id for row in running.rows),
        parts=parts,
    )


def _choices(known: Iterable[tuple[str, str]], chosen: str, label: str) -> tuple[Choice, ...]:
    """The choices, with one that only an address can make."""
    choices = tuple(Choice(value, text, value == chosen) for value, text in known)
    return choices if any(one.chosen for one in choices) else (*choices, Choice(chosen, label, chosen=True))


def _requests(number: float) -> str:
    return counted(int(number), "request")
