"""The frame of every page: who looks, what is wrong with the manifest, what was just done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from framework.dashboard.updates import Fragment
from framework.reconcile.current import CurrentManifest
from framework.values.event import Event
from framework.values.problem import Problem

Section = Literal[
    "overview", "pools", "speculation", "files", "manifest", "requests", "events", "try", "model", "none"
]


@dataclass(frozen=True)
class NavEntry:
    """A page that every page leads to; `section` is what marks it as the one at hand."""

    section: Section
    label: str
    url: str


NAVIGATION = (
    NavEntry("overview", "Overview", "/"),
    NavEntry("pools", "Pools", "/pools"),
    NavEntry("speculation", "Speculation", "/speculation"),
    NavEntry("try", "Try", "/try"),
    NavEntry("files", "Files", "/files"),
    NavEntry("manifest", "Manifest", "/manifest"),
    NavEntry("requests", "Requests", "/requests"),
    NavEntry("events", "Events", "/events"),
)
"""In the order of the frame. A page adds its line here and its name to `Section`; twelve fit at 360 px."""


@dataclass(frozen=True)
class Viewer:
    """Who looks at a page. `csrf` goes into every form; without `may_operate` there are no buttons."""

    name: str
    csrf: str
    may_operate: bool
    may_sign_out: bool
    signed_in: bool = True


@dataclass(frozen=True)
class Role:
    """What parts of a page know of who looks: no more, so that readers of one role can share them."""

    csrf: str
    may_operate: bool


NOBODY = Viewer("", "", may_operate=False, may_sign_out=False, signed_in=False)
"""Somebody who has shown no key yet."""


@dataclass(frozen=True)
class Banner:
    """Findings in the manifest as it is in the file now; `kept_since` is when the one in force was read."""

    problems: tuple[Problem, ...]
    errors: int
    notices: tuple[str, ...]
    manifest_name: str
    kept_since: datetime


@dataclass(frozen=True)
class Notice:
    """Confirmation of an action, or why it was refused. Nothing to say: `text` is empty."""

    tone: Literal["ok", "bad"] = "ok"
    text: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Shell:
    """The frame of a page. `live_url` is empty where nothing is sent by itself."""

    title: str
    section: Section
    version: str
    banner: Banner | None
    notice: Notice
    page_url: str
    live_url: str = ""


def banner_of(current: CurrentManifest) -> Banner:
    """The findings of the newest text of the manifest."""
    errors = sum(problem.severity == "error" for problem in current.problems)
    return Banner(
        current.problems, errors, current.server_notices, current.manifest.path.name, current.loaded_at
    )


def banner_fragment(banner: Banner) -> Fragment:
    """The banner as a part that is replaced by itself."""
    return Fragment("banner", "_banner.html", "banner", banner)


def notice_of(command: Event | None) -> Notice:
    """The confirmation of a command that was taken; `command` is its event."""
    if command is None:
        return Notice()
    return Notice("ok", command.message, f"Event {command.id}, by {command.data.get('by', 'unknown')}.")
