"""The pages of the manifest in every state worth seeing, rendered without a server or a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from framework.api.answers import (
    DeviceOutlook,
    DiffAnswer,
    ModelOutlook,
    Outlook,
    RefusedInstance,
    WayAnswer,
)
from framework.dashboard.pages.manifest import (
    MOVED,
    NO_PREVIEW,
    Conflict,
    ManifestPage,
    VersionList,
    VersionPage,
    check_list,
    editor_form,
    preview_of,
    version_list,
    version_row,
    ways_page,
)
from framework.dashboard.pages.shell import Shell
from framework.dashboard.pages.text_changes import text_changes
from framework.editing.documents import ManifestFile
from framework.editing.history import Version
from framework.manifest.edit import Change
from framework.values.action import FieldChange, ModelAction
from framework.values.manifest_edit import FieldEdit, Way
from framework.values.problem import Problem
from framework.values.reason import Failure, Reason
from tests.dashboard import fits, samples

TEXT = "[models.a]\nslots = 2\n"
TYPED = "[models.a]\nslot = 4\n"
MAIN = ManifestFile("/etc/paddock/serve.toml", Path("/etc/paddock/serve.toml"), TEXT.encode())
INCLUDED = ManifestFile("/etc/paddock/models.d/b.toml", Path("/etc/paddock/models.d/b.toml"), b"")
FILES = (MAIN, INCLUDED)
PROBLEM = Problem("unknown_key", MAIN.name, 2, 1, "models.a.slot", "unknown", "slot", "one of 31", "slots")
WARNING = replace(PROBLEM, severity="warning", line=1, found="", allowed="", suggestion="")
ELSEWHERE = replace(PROBLEM, file=INCLUDED.name)
NOWHERE = replace(PROBLEM, file="PADDOCK_LISTEN", line=0, column=0)
VERSION = Version(3, samples.NOW, "laptop", MAIN.name, "a" * 64, "b" * 64, 42, "replaces a")
GONE = replace(VERSION, id=2, file="/etc/paddock/gone.toml")


def refused(reason: Reason, name: str = "a") -> RefusedInstance:
    """A model that planning refused."""
    return RefusedInstance(samples.request(name), 0, Failure(reason))


def outlook(name: str = "a", reason: Reason = samples.NO_MEMORY) -> Outlook:
    """Memory that gets more, less and too much; models that are new, refused, and given something else."""
    before = samples.plan(samples.request(name), fit=fits.ON_HOST)
    after = replace(before, reasons=(reason,), slots=1)
    devices = (
        DeviceOutlook(name, "gpu", 100, 40, 60),
        DeviceOutlook("CUDA1", "gpu", 100, 60, 40),
        DeviceOutlook("CUDA2", "gpu", 100, 60, 160),
        DeviceOutlook("CPU", None, 100, 60, 60),
        DeviceOutlook("CUDA3", None, 100, 0, 0),
    )
    models = (
        ModelOutlook(name, before, after, runs=True, ran=True),
        ModelOutlook("new", None, refused(reason), runs=False, ran=False),
    )
    return Outlook(devices, models, 3)


def diff(name: str = "a", reason: Reason = samples.NO_MEMORY) -> DiffAnswer:
    """One action of every kind."""
    change = FieldChange("context", None, {"k": name}, "restart", name)
    kinds = ("stop", "replace", "start", "live", "record", "none")
    actions = tuple(ModelAction(name, None, kind, (change,)) for kind in kinds)
    return DiffAnswer(actions, (), (name,), outlook(name, reason))


def manifest_page(shell: Shell, text: str = TEXT, *problems: Problem, moved: str = "") -> ManifestPage:
    """The editor with a text in it."""
    check = check_list(problems, MAIN.name, moved)
    form = editor_form(FILES, MAIN, text, MAIN.sha256, check)
    return ManifestPage(shell, form, check, NO_PREVIEW, None, VersionList(()))


def manifest_pages(shell: Shell) -> Iterator[tuple[str, str, object]]:
    """Name, template and value of each."""
    plain = manifest_page(shell)
    yield "manifest", "manifest.html", plain
    broken = manifest_page(shell, TYPED, PROBLEM, WARNING, ELSEWHERE, NOWHERE, moved=MOVED)
    yield (
        "manifest-broken",
        "manifest.html",
        replace(broken, preview=preview_of(DiffAnswer((), (PROBLEM,)), "", "")),
    )
    yield "manifest-warned", "manifest.html", manifest_page(shell, TEXT, WARNING)
    alone = editor_form((MAIN,), MAIN, TEXT, MAIN.sha256, plain.check, "A remedy is in it.")
    history = version_list([VERSION, GONE], FILES)
    shown = replace(plain, form=alone, preview=preview_of(diff(), TEXT, TYPED), history=history)
    yield "manifest-preview", "manifest.html", shown
    same = replace(plain, preview=preview_of(DiffAnswer(), TEXT, TEXT))
    yield "manifest-preview-of-nothing", "manifest.html", same
    changes = text_changes("From one to the other", TEXT, TYPED)
    conflict = Conflict(replace(changes, hidden=4), TEXT, "/manifest")
    yield "manifest-conflict", "manifest.html", replace(plain, conflict=conflict)
    yield "manifest-version", "manifest_version.html", version_page(shell, VERSION)
    yield "manifest-version-of-nothing", "manifest_version.html", version_page(shell, GONE)
    yield "manifest-ways", "manifest_ways.html", ways_page(shell, "a", ways())
    yield "manifest-no-ways", "manifest_ways.html", ways_page(shell, "a", ())


def version_page(shell: Shell, version: Version, text: str = TYPED) -> VersionPage:
    """A text of before."""
    changes = text_changes("What going back changes", TEXT, text)
    return VersionPage(shell, version_row(version, FILES), text, changes)


def ways(name: str = "a", reason: Reason = samples.NO_MEMORY) -> tuple[WayAnswer, ...]:
    """An edit that helps, one that is refused by the planner, one that makes no manifest."""
    plan = samples.plan(samples.request(name), fit=fits.ON_HOST)
    way = Way(name, (FieldEdit(("slots",), 1),))
    changes = (Change(("models", name, "slots"), 1), Change(("models", name, "projector"), None))
    return (
        WayAnswer("context_fitted", way, MAIN.name, changes, plan, replace(plan, slots=1)),
        WayAnswer("context_fitted", way, MAIN.name, changes, plan, refused(reason, name)),
        WayAnswer("context_fitted", way, MAIN.name, changes, plan, None, (PROBLEM,)),
    )


def hostile_manifest_pages(shell: Shell, text: str) -> Iterator[tuple[str, str, object]]:
    """The same with a text from outside wherever one can come from."""
    reason = Reason("a_code", text, text, "error", {text: text})
    problem = Problem("a_code", MAIN.name, 1, 1, text, text, text, text, text)
    page = manifest_page(shell, text, problem, replace(problem, file=text))
    preview = preview_of(diff(text, reason), TEXT, text)
    kept = replace(VERSION, by=text, summary=text, file=text)
    conflict = Conflict(text_changes(text, TEXT, text), text, "/manifest")
    history = version_list([kept], FILES)
    yield "manifest", "manifest.html", replace(page, preview=preview, conflict=conflict, history=history)
    yield "manifest-version", "manifest_version.html", version_page(shell, kept, text)
    yield "manifest-ways", "manifest_ways.html", ways_page(shell, text, ways(text, reason))
