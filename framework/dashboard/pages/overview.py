"""The overview: what runs, loads, waits or failed and why, the devices, the last events (01 §3). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from framework.dashboard.pages.device_list import DeviceList
from framework.dashboard.pages.event_rows import RecentEvents
from framework.dashboard.pages.ids import element_id
from framework.dashboard.pages.instance_facts import (
    ProgressFacts,
    context_and_slots,
    generation_rate,
    model_flags,
    notes_of,
    progress_of,
    running_speculation,
    serving_instance,
    whole_s,
)
from framework.dashboard.pages.shell import Shell
from framework.dashboard.states import Action, Group, Look, actions_of, look_of_model
from framework.dashboard.updates import Fragment
from framework.dashboard.urls import model_url
from framework.reconcile.current import CurrentManifest
from framework.values.instance import ModelView, State
from framework.values.reason import Reason

GROUPS: tuple[tuple[Group, str, str], ...] = (
    ("ready", "Ready", "check"),
    ("loading", "Loading", "spin"),
    ("waiting", "Retrying", "clock"),
    ("failed", "Failed", "cross"),
    ("stopped", "Not loaded", "circle"),
)


@dataclass(frozen=True)
class GroupLink:
    """A count of models that is also the filter for them. `key` empty: all."""

    key: str
    label: str
    icon: str
    models: int
    url: str
    chosen: bool


@dataclass(frozen=True)
class Summary:
    """The system in one line. `tokens_per_s` is the sum over what generates, None when nothing is known."""

    groups: tuple[GroupLink, ...]
    in_flight: int
    waiting: int
    tokens_per_s: float | None
    manifest_name: str
    manifest_read_at: datetime


@dataclass(frozen=True)
class ModelRow:
    """One model. `error` stands for what keeps it from serving; `notes` counts reasons worth reading."""

    id: str
    name: str
    display_name: str
    url: str
    aliases: tuple[str, ...]
    look: Look
    since: datetime | None
    flags: tuple[str, ...]
    progress: ProgressFacts | None
    in_flight: int
    waiting: int
    wait_eta_s: float | None
    context: str
    slots: str
    speculation: str
    tokens_per_s: float | None
    error: Reason | None
    retry_in_s: float | None
    notes: int
    actions: tuple[Action, ...]
    back: str


@dataclass(frozen=True)
class ModelTable:
    """The models that the filter lets through. `declared` counts all of them."""

    rows: tuple[ModelRow, ...]
    declared: int
    manifest_name: str


@dataclass(frozen=True)
class OverviewPage:
    """Everything on `/`."""

    shell: Shell
    summary: Summary
    table: ModelTable
    devices: DeviceList
    recent: RecentEvents


def overview_url(group: Group | None) -> str:
    """The overview, showing only one group of models."""
    return f"/?state={group}" if group else "/"


def summary_of(views: Sequence[ModelView], group: Group | None, current: CurrentManifest) -> Summary:
    """Counts over all models, whatever the filter shows."""
    groups = [look_of_model(view).group for view in views]
    links = [GroupLink("", "All models", "list", len(views), overview_url(None), group is None)]
    links += [
        GroupLink(key, label, icon, groups.count(key), overview_url(key), group == key)
        for key, label, icon in GROUPS
    ]
    rates = [rate for view in views if (rate := generation_rate(view)) is not None]
    return Summary(
        tuple(links),
        in_flight=sum(instance.inflight for view in views for instance in view.instances),
        waiting=sum(view.queue.waiting for view in views),
        tokens_per_s=sum(rates) if rates else None,
        manifest_name=current.manifest.path.name,
        manifest_read_at=current.loaded_at,
    )


def table_of(views: Sequence[ModelView], group: Group | None, manifest_name: str) -> ModelTable:
    """The models in declared order."""
    back = overview_url(group)
    rows = [row_of(view, back) for view in views if group in (None, look_of_model(view).group)]
    return ModelTable(tuple(rows), len(views), manifest_name)


def row_of(view: ModelView, back: str) -> ModelRow:
    """One model as a row; `back` is where its buttons lead back to."""
    request = view.request
    serving = serving_instance(view)
    ready = view.state is State.READY
    context, slots = context_and_slots(request, serving)
    return ModelRow(
        id=element_id("m", request.id),
        name=request.id,
        display_name=request.live.display_name or "",
        url=model_url(request.id),
        aliases=request.live.aliases,
        look=look_of_model(view),
        since=serving.since if serving else None,
        flags=model_flags(view),
        progress=next((fact for i in view.instances if (fact := progress_of(i)) is not None), None),
        in_flight=sum(instance.inflight for instance in view.instances),
        waiting=view.queue.waiting,
        wait_eta_s=whole_s(view.queue.eta_s) if view.queue.waiting else None,
        context=context,
        slots=slots,
        speculation=running_speculation(request, serving),
        tokens_per_s=generation_rate(view),
        error=serving.last_error if serving and not ready else None,
        retry_in_s=whole_s(serving.retry_in_s) if serving else None,
        notes=len(notes_of(serving)) if serving and ready else 0,
        actions=actions_of(view),
        back=back,
    )


def overview_fragments(page: OverviewPage) -> tuple[Fragment, ...]:
    """The page as parts that change on their own: a model at rest is not sent when another one moves."""
    rows = tuple(Fragment(row.id, "_model_row.html", "row", row) for row in page.table.rows)
    outline = (page.table.declared, page.table.manifest_name, tuple(row.id for row in page.table.rows))
    return (
        Fragment("summary", "_summary.html", "summary", page.summary),
        Fragment("models", "_model_table.html", "table", page.table, outline=outline, parts=rows),
        Fragment("devices", "_devices.html", "devices", page.devices),
        Fragment("recent", "_recent.html", "recent", page.recent),
    )
