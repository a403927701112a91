"""Every page in every state worth seeing, rendered without a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from framework.api.answers import DevicesAnswer
from framework.api.reason_guide import ReasonGuide, read_guide
from framework.dashboard.answers import ErrorPage
from framework.dashboard.assets import Assets
from framework.dashboard.pages.device_list import device_list_of
from framework.dashboard.pages.event_rows import RecentEvents, newest_first
from framework.dashboard.pages.events import EventQuery, EventsPage, events_fragments, events_page
from framework.dashboard.pages.log import LogQuery, log_fragment, log_view
from framework.dashboard.pages.model import ModelPage, body_fragment, body_of, gone_fragment
from framework.dashboard.pages.overview import OverviewPage, overview_fragments, summary_of, table_of
from framework.dashboard.pages.pools import PoolsPage, pool_sections, pools_fragments
from framework.dashboard.pages.pools_past import past_fragments
from framework.dashboard.pages.reason_pages import bearers_of, reason_page, reasons_page
from framework.dashboard.pages.request import RequestPage, request_fragment
from framework.dashboard.pages.requests import RequestsPage, requests_fragments
from framework.dashboard.pages.shell import NOBODY, Notice, Section, Shell, Viewer, banner_fragment, banner_of
from framework.dashboard.pages.speculation import SpeculationPage, spec_sections, speculation_fragments
from framework.dashboard.session_pages import SignInPage
from framework.dashboard.templating import Templates
from framework.dashboard.tryout.lanes import lane_fragment
from framework.dashboard.tryout.page import TryPage
from framework.dashboard.updates import Fragment
from framework.reconcile.current import CurrentManifest
from framework.runtime.logs import LogLine
from framework.values.event import Event
from framework.values.instance import InstanceView, ModelView, QueueView, State
from framework.values.manifest import Manifest
from framework.values.plan import FitPlan, LaunchResult
from framework.values.pool import PoolView, WaitingView
from framework.values.problem import Problem
from framework.values.reason import Reason
from framework.values.request import PoolLimits
from tests.dashboard import fits, history_samples, pool_samples, samples, spec_samples
from tests.dashboard.fake_system import DEVICES, ROOT, STATIC, TEMPLATES
from tests.dashboard.file_renders import file_pages, hostile_file_pages
from tests.dashboard.manifest_renders import hostile_manifest_pages, manifest_pages
from tests.dashboard.request_renders import hostile_request_pages, request_pages
from tests.dashboard.samples import GIB
from tests.dashboard.try_samples import hostile_try_page, try_pages

OPERATOR = Viewer("dashboard", "csrf-of-the-session", may_operate=True, may_sign_out=False)
WATCHER = Viewer("night-shift", "csrf-of-the-session", may_operate=False, may_sign_out=True)
PROBLEM = Problem(
    "unknown_key",
    "serve.toml",
    14,
    1,
    "models.a.contxt",
    "unknown key",
    "contxt",
    "one of 31 keys",
    "context",
)
GUIDE = read_guide(ROOT / "docs" / "reasons.md")
WARNING = replace(PROBLEM, severity="warning")


@dataclass(frozen=True)
class Page:
    """A page value, the template that prints it, and who looks at it."""

    template: str
    value: object
    viewer: Viewer = OPERATOR


@cache
def templates() -> Templates:
    """The templates of the product, compiled once."""
    return Templates(TEMPLATES, Assets(STATIC))


def manifest(*problems: Problem, notices: tuple[str, ...] = ()) -> CurrentManifest:
    """The manifest in force, with what is wrong in the file now."""
    return CurrentManifest(Manifest(Path("/etc/serve.toml"), "", ()), samples.NOW, problems, notices)


def shell(section: Section = "overview", *problems: Problem, **fields: object) -> Shell:
    """The frame of a page."""
    frame = Shell(
        "Title", section, "0.1.0", banner_of(manifest(*problems, notices=("listen",))), Notice(), "/"
    )
    return replace(frame, **fields)  # type: ignore[arg-type]


def overview(*views: ModelView, events: tuple[Event, ...] = (), **frame: object) -> OverviewPage:
    """The overview of these models."""
    listed = DevicesAnswer(DEVICES, (samples.CONTEXT_CUT,), samples.NOW)
    return OverviewPage(
        shell("overview", live_url="/live?page=overview", **frame),
        summary_of(views, None, manifest()),
        table_of(views, None, "serve.toml"),
        device_list_of(listed, [pool_samples.gpu_pool()]),
        RecentEvents(newest_first(events), "/events", names_models=True),
    )


def pools_page(*pools: PoolView, reasons: tuple[Reason, ...] = (), listed: bool = True) -> PoolsPage:
    """The page of these pools."""
    names = dict.fromkeys(one.model for pool in pools for one in pool.residents)
    answer = DevicesAnswer(DEVICES, reasons, samples.NOW if listed else None)
    sections = pool_sections(pools, [samples.model(name) for name in names], answer)
    past = history_samples.pools_past(pools[0].devices if pools else ())
    return PoolsPage(shell("pools", live_url="/live?page=pools"), sections, past)


def speculation_page(*views: ModelView) -> SpeculationPage:
    """The page of what drafts in these models."""
    return SpeculationPage(
        shell("speculation", live_url="/live?page=speculation"), spec_sections(views, history_samples.busy)
    )


def model_page(
    view: ModelView, *lines: str, text: str = "", replicas: int = 1, waiting: WaitingView | None = None
) -> ModelPage:
    """The page of a model."""
    log = log_view(
        view.request.id, [LogLine(n, line) for n, line in enumerate(lines, 1)], LogQuery(text), replicas
    )
    recent = RecentEvents(newest_first([samples.event(1)]), "/events", names_models=False)
    history = (
        history_samples.busy(view.request.id) if view.instances else history_samples.idle(view.request.id)
    )
    body = body_of(view, recent, history_samples.loaded(view.request.id), waiting, history=history)
    return ModelPage(shell("model", live_url="/live?page=model"), body, log)


def all_pages() -> Iterator[tuple[str, Page]]:
    """Pages with names for tests. Together they print every branch of every template."""
    everything = (
        samples.model(asked=samples.request(live={"aliases": ("small",), "replicas": 2})),
        samples.loading(),
        samples.failed(),
        samples.degraded(),
        samples.model("idle", State.STOPPED, stopped_by_command=True),
        samples.model("leaving", State.DRAINING, removed=True),
        samples.model("flaky", State.BACKOFF, instances=(retrying(),)),
        planned("on-host", fits.ON_HOST),
        planned("on-two", fits.ON_TWO, samples.result(buffers=fits.SAID_OF_TWO, held_bytes={"CPU": 2 * GIB})),
        planned("on-three", fits.ON_THREE),
    )
    events = (
        samples.event(1, "manifest_loaded", model=None, replica=None),
        samples.event(
            2, "degraded", reason=samples.CONTEXT_CUT, data={"free_bytes": 5, "seconds": 1.5, "a": [1]}
        ),
        samples.event(3, "command", replica=1, data={"by": "laptop"}),
    )
    yield "overview", Page("overview.html", overview(*everything, events=events))
    yield "overview-for-viewers", Page("overview.html", overview(*everything), WATCHER)
    yield "overview-empty", Page("overview.html", overview())
    filtered = replace(
        overview(),
        table=table_of(everything, "failed", "serve.toml"),
        devices=device_list_of(DevicesAnswer()),
    )
    yield "overview-filtered", Page("overview.html", filtered)
    nothing = replace(filtered, table=table_of(everything[:1], "failed", "serve.toml"))
    yield "overview-filter-finds-nothing", Page("overview.html", nothing)
    broken = overview(banner=banner_of(manifest(PROBLEM)), notice=Notice("bad", "No.", "Because."))
    yield "broken-manifest", Page("overview.html", broken)
    warned = overview(banner=banner_of(manifest(WARNING)))
    yield "manifest-with-warnings", Page("overview.html", warned)
    for view in everything:
        yield f"model-{view.request.id}", Page("model.html", model_page(view, "a line"))
    waits = samples.model(state=State.PENDING, queue=QueueView(3, 16, 4.2, 11.7, position=1))
    yield "model-that-waits", Page("model.html", model_page(waits, waiting=pool_samples.waiting()))
    for pages in (pool_pages, speculation_pages, edited_pages, tried_pages):
        yield from pages()
    yield "model-for-viewers", Page("model.html", model_page(everything[0]), WATCHER)
    searched = model_page(everything[0], text="x", replicas=3)
    yield "model-log-search-finds-nothing", Page("model.html", searched)
    of_requests = request_pages(shell("requests", live_url="/live?page=requests"))
    for name, template, value in (*of_requests, *file_pages(shell("files"))):
        yield name, Page(template, value)
    yield from reason_pages_of(events)
    yield from event_pages(events)
    yield from bare_pages()


def event_pages(events: tuple[Event, ...]) -> Iterator[tuple[str, Page]]:
    """Events in the middle of the log, none at all, and none that pass."""
    query = EventQuery(model="smollm2", kind="state", before=9)
    yield "events", Page("events.html", events_page(shell("events"), query, ("smollm2",), events, older=True))
    empty = events_page(shell("events", live_url="/live"), EventQuery(), (), (), older=False)
    yield "events-empty", Page("events.html", empty)
    missed = events_page(shell("events"), EventQuery(kind="ready"), (), (), older=False)
    yield "events-filter-finds-nothing", Page("events.html", missed)


def tried_pages() -> Iterator[tuple[str, Page]]:
    """The page Try."""
    for name, value in try_pages(shell("try", live_url="/live?page=try")):
        yield name, Page("try.html", value)


def bare_pages() -> Iterator[tuple[str, Page]]:
    """Pages for somebody who has shown no key."""
    bare = Shell("Sign in", "none", "0.1.0", None, Notice("bad", "This key is not known."), "/sign-in")
    yield "sign-in", Page("sign_in.html", SignInPage(bare, "/models/a%2Fb"), NOBODY)
    near = (("smollm2", "/models/smollm2"), ("other", "/models/other"))
    yield "error", Page("error.html", ErrorPage(bare, 404, "Not found", "There is no model 'x'.", near))


def edited_pages() -> Iterator[tuple[str, Page]]:
    """The manifest, for those who may change it and for others."""
    for name, template, value in manifest_pages(shell("manifest", live_url="/live?page=manifest")):
        yield name, Page(template, value)
        yield f"{name}-for-viewers", Page(template, value, WATCHER)


def pool_pages() -> Iterator[tuple[str, Page]]:
    """Pools of every kind."""
    yield "pools", Page("pools.html", pools_page(*pool_samples.all_pools(), reasons=(samples.CONTEXT_CUT,)))
    yield "pools-for-viewers", Page("pools.html", pools_page(*pool_samples.all_pools()), WATCHER)
    yield "pools-not-listed-yet", Page("pools.html", pools_page(pool_samples.pool(devices=()), listed=False))


def reason_pages_of(events: tuple[Event, ...]) -> Iterator[tuple[str, Page]]:
    """The explanations: all, one that a model has now, one that nobody explains, and none installed."""
    yield "reasons", Page("reasons.html", reasons_page(shell("none"), GUIDE))
    yield "reasons-not-installed", Page("reasons.html", reasons_page(shell("none"), ReasonGuide()))
    bearers = bearers_of([samples.degraded()], DEVICES, [samples.CONTEXT_CUT])
    yield "reason", Page("reason.html", reason_page(shell("none"), GUIDE, "context_lowered", bearers, events))
    unknown = reason_page(shell("none"), GUIDE, "context_lowred", (), ())
    yield "reason-unknown", Page("reason.html", unknown)


def speculation_pages() -> Iterator[tuple[str, Page]]:
    """What is told of drafting, on its own page and on those of its models."""
    drafting = spec_samples.all_models()
    yield "speculation", Page("speculation.html", speculation_page(*drafting))
    yield "speculation-for-viewers", Page("speculation.html", speculation_page(*drafting), WATCHER)
    yield "speculation-empty", Page("speculation.html", speculation_page())
    for view in drafting:
        yield f"model-that-drafts-{view.request.id}", Page("model.html", model_page(view))


def hostile_pages() -> Iterator[tuple[str, Page]]:
    """All pages, with a hostile text wherever a text can come from outside."""
    for number, text in enumerate(samples.HOSTILE):
        reason = Reason("a_code", text, text, "error", {text: text})
        asked = samples.request(text, live={"aliases": (text,), "display_name": text})
        broken = samples.instance(asked, State.FAILED, last_error=reason)
        views = (
            samples.model(text, asked=asked),
            samples.model(text, State.FAILED, asked=asked, instances=(broken,)),
        )
        events = (samples.event(1, model=text, message=text, reason=reason, data={text: text}),)
        problem = Problem("a_code", text, 1, 1, text, text, text, text, text)
        banner, notice = banner_of(manifest(problem)), Notice("ok", text, text)
        yield (
            f"overview-{number}",
            Page("overview.html", overview(*views, events=events, banner=banner, notice=notice)),
        )
        for view in views:
            page = replace(model_page(view, text, text=text), shell=shell("model", title=text))
            yield f"model-{view.state}-{number}", Page("model.html", page)
        yield f"pools-{number}", Page("pools.html", pools_page(hostile_pool(text), reasons=(reason,)))
        yield f"speculation-{number}", Page("speculation.html", speculation_page(spec_samples.hostile(text)))
        about = reason_page(shell("none"), GUIDE, text, bearers_of(views, (), (reason,)), events)
        yield f"reason-{number}", Page("reason.html", about)
        for name, template, value in hostile_file_pages(shell("files", title=text), text):
            yield f"{name}-{number}", Page(template, value)
        for name, template, value in hostile_manifest_pages(shell("manifest", title=text), text):
            yield f"{name}-{number}", Page(template, value)
        yield f"try-{number}", Page("try.html", hostile_try_page(shell("try", title=text), text))
        for name, template, value in hostile_request_pages(shell("requests", title=text), text):
            yield f"{name}-{number}", Page(template, value)
        listed = events_page(shell("events"), EventQuery(model=text), (text,), events, older=False)
        yield f"events-{number}", Page("events.html", listed)


def hostile_pool(text: str) -> PoolView:
    """A pool with this text wherever a text can come from outside."""
    return pool_samples.pool(
        limits=PoolLimits(text, (text,)),
        devices=(pool_samples.use(text, description=text),),
        residents=(pool_samples.resident(text, bytes={text: 1}),),
        waiting=(pool_samples.waiting(text, reason=Reason("a_code", text, text, "error", {text: text})),),
    )


def all_fragments() -> Iterator[Fragment]:
    """Every fragment that a stream can send, nested ones included."""
    for _, page in all_pages():
        yield from _flat(_fragments_of(page.value))
    yield gone_fragment("gone")
    yield banner_fragment(banner_of(manifest(PROBLEM)))


def planned(name: str, fit: FitPlan, result: LaunchResult | None = None) -> ModelView:
    """A model whose memory was planned, and what came of it."""
    asked = samples.request(name)
    plan = samples.plan(asked, fit=fit)
    instance = samples.instance(asked, plan=plan, result=result or samples.result())
    return samples.model(instances=(instance,), asked=asked)


def retrying() -> InstanceView:
    """An instance that waits for its next try."""
    asked = samples.request("flaky")
    return samples.instance(asked, State.BACKOFF, last_error=samples.NO_MEMORY, retry_in_s=16.0, restarts=3)


def _fragments_of(value: object) -> tuple[Fragment, ...]:
    if isinstance(value, OverviewPage):
        return overview_fragments(value)
    if isinstance(value, PoolsPage):
        return (*pools_fragments(value.pools), *past_fragments(value.past))
    if isinstance(value, SpeculationPage):
        return speculation_fragments(value.speculation)
    if isinstance(value, TryPage):
        return tuple(lane_fragment(lane.state) for lane in value.lanes)
    if isinstance(value, RequestsPage):
        return requests_fragments(value)
    if isinstance(value, RequestPage):
        return (request_fragment(value.body),)
    if isinstance(value, ModelPage):
        return (body_fragment(value.body), log_fragment(value.log))
    return events_fragments(value) if isinstance(value, EventsPage) else ()


def _flat(fragments: tuple[Fragment, ...]) -> Iterator[Fragment]:
    for fragment in fragments:
        yield fragment
        yield from _flat(fragment.parts)
