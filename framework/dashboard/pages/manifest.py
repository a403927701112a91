"""The editor of the manifest: its text, what is wrong in it, what an edit would do, what was before. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from textwrap import shorten

from framework.api.answers import DiffAnswer, WayAnswer
from framework.api.shapes.answers import action_json
from framework.dashboard.pages.outlook import Given, OutlookTable, given, new_reasons, outlook_table
from framework.dashboard.pages.shell import Shell
from framework.dashboard.pages.text_changes import TextChanges, text_changes
from framework.dashboard.urls import model_url, with_query
from framework.editing.documents import ManifestFile
from framework.editing.history import Version
from framework.manifest.key_paths import dotted
from framework.reconcile.change_values import value_with_unit
from framework.values.action import ActionKind
from framework.values.manifest_edit import FieldEdit, Way
from framework.values.problem import Problem
from framework.values.reason import Reason
from framework.values.units_text import counted

MANIFEST = "/manifest"
LONGEST_VALUE = 80
MOVED = "The file on disk has changed since this edit began; applying shows both."
KINDS: Mapping[ActionKind, tuple[str, str]] = {
    "start": ("starts", "ok"),
    "replace": ("is replaced", "wait"),
    "live": ("changes while it runs", "busy"),
    "record": ("changes with its next start", "idle"),
    "stop": ("is removed", "bad"),
    "none": ("stays as it is", "idle"),
}
NEW_KINDS: Mapping[ActionKind, tuple[str, str]] = {
    "start": ("is added and starts", "ok"),
    "record": ("is added", "idle"),
}
EFFECTS: Mapping[object, str] = {"restart": "restart", "live": "at once", "nothing": "no restart"}


@dataclass(frozen=True)
class FileLink:
    """A file of the manifest that can be edited."""

    label: str
    url: str
    chosen: bool


@dataclass(frozen=True)
class GutterPart:
    """Numbers beside the text: a run of plain ones, or one that a problem points at (`line` above 0)."""

    text: str
    line: int
    tone: str


@dataclass(frozen=True)
class EditorForm:
    """The text in its field. `note` says where an edit in it came from."""

    files: tuple[FileLink, ...]
    file: str
    label: str
    """The same for people: below the folder of the manifest."""
    text: str
    base_sha256: str
    rows: int
    gutter: tuple[GutterPart, ...]
    note: str


@dataclass(frozen=True)
class ProblemRow:
    """A finding; `line` is 0 where it is not in the text that is shown."""

    problem: Problem
    line: int
    column: int
    url: str


@dataclass(frozen=True)
class CheckList:
    """What is wrong with the text. `verdict` is that in one sentence."""

    verdict: str
    tone: str
    icon: str
    moved: str
    """What to know of the file on disk, when it is not what the edit began with."""
    rows: tuple[ProblemRow, ...]


@dataclass(frozen=True)
class ChangeRow:
    """A field with its values as texts, and why the change has the effect it has."""

    field: str
    before: str
    after: str
    effect: str
    why: str


@dataclass(frozen=True)
class ActionRow:
    """What happens to a model."""

    model: str
    url: str
    label: str
    tone: str
    changes: tuple[ChangeRow, ...]


@dataclass(frozen=True)
class Preview:
    """What applying the text would do. `absent` says why there is nothing to show."""

    absent: str
    actions: tuple[ActionRow, ...]
    untouched: str
    notices: tuple[str, ...]
    outlook: OutlookTable | None
    changes: TextChanges | None


@dataclass(frozen=True)
class Conflict:
    """The file changed underneath: both texts, and what to do with them."""

    changes: TextChanges
    on_disk: str
    url: str


@dataclass(frozen=True)
class VersionRow:
    """A text that was replaced. `base_sha256` is of what going back replaces, empty where it cannot."""

    number: int
    at: datetime
    by: str
    file: str
    summary: str
    size_bytes: int
    url: str
    base_sha256: str


@dataclass(frozen=True)
class VersionList:
    """The history, newest first."""

    rows: tuple[VersionRow, ...]


@dataclass(frozen=True)
class ManifestPage:
    """Everything on `/manifest`; viewers get no history, since what it holds is not veiled."""

    shell: Shell
    form: EditorForm
    check: CheckList
    preview: Preview
    conflict: Conflict | None
    history: VersionList


@dataclass(frozen=True)
class VersionPage:
    """One text of before, and what going back to it changes in the file."""

    shell: Shell
    version: VersionRow
    text: str
    changes: TextChanges


@dataclass(frozen=True)
class WayRow:
    """An edit that may help; `edits` is what is written, `form` what a button sends."""

    code: str
    sentence: str
    edits: str
    after: Given
    reasons: tuple[Reason, ...]
    fault: str
    form: str


@dataclass(frozen=True)
class WaysPage:
    """What could be changed for a model, each as the planner sees it."""

    shell: Shell
    model: str
    url: str
    before: Given
    rows: tuple[WayRow, ...]


def manifest_url(file: str = "") -> str:
    """The editor, of an included file where one is named."""
    return with_query(MANIFEST, {"file": file})


def editor_form(
    files: Sequence[ManifestFile], file: ManifestFile, text: str, base: str, check: CheckList, note: str = ""
) -> EditorForm:
    """The field with a text of one of the files."""
    links = tuple(
        FileLink(file_label(files, one), manifest_url(one.name if one is not files[0] else ""), one is file)
        for one in files
    )
    rows = text.count("\n") + 1
    return EditorForm(
        links if len(links) > 1 else (),
        file.name,
        file_label(files, file),
        text,
        base,
        rows,
        _gutter(rows, check.rows),
        note,
    )


def file_label(files: Sequence[ManifestFile], file: ManifestFile) -> str:
    """How a file is called beside the others: by its path below the folder of the manifest."""
    folder = files[0].path.parent
    return str(file.path.relative_to(folder)) if file.path.is_relative_to(folder) else file.name


def check_list(problems: Iterable[Problem], file: str, moved: str = "") -> CheckList:
    """The findings, those of the shown file with their line."""
    rows = tuple(_problem(problem, file) for problem in problems)
    errors = sum(row.problem.severity == "error" for row in rows)
    if errors:
        return CheckList(f"{counted(errors, 'error')}: it cannot be applied so.", "bad", "cross", moved, rows)
    if rows:
        return CheckList(
            f"It can be applied, with {counted(len(rows), 'warning')}.", "wait", "warn", moved, rows
        )
    return CheckList("No errors.", "ok", "check", moved, rows)


def preview_of(answer: DiffAnswer, before: str, after: str) -> Preview:
    """What an apply would do."""
    if any(problem.severity == "error" for problem in answer.problems):
        return replace(
            NO_PREVIEW, absent="The text has errors; there is nothing to preview until they are gone."
        )
    moving = [action for action in answer.actions if action.kind != "none"]
    same = len(answer.actions) - len(moving)
    rows = []
    for action in moving:
        label, tone = (action.is_addition and NEW_KINDS.get(action.kind)) or KINDS[action.kind]
        fields = tuple(_change(one) for one in action_json(action)["changes"])
        rows.append(ActionRow(action.model, model_url(action.model), label, tone, fields))
    untouched = f"{counted(same, 'model')} not touched." if same else ""
    memory = None if answer.memory is None else outlook_table(answer.memory)
    changes = text_changes("From the file to this text", before, after)
    return Preview("", tuple(rows), untouched, answer.notices, memory, changes)


NO_PREVIEW = Preview(
    "Preview shows what applying the text would do, before it is written.", (), "", (), None, None
)


def version_list(versions: Iterable[Version], files: Sequence[ManifestFile]) -> VersionList:
    """The history, with what going back would replace."""
    return VersionList(tuple(version_row(version, files) for version in versions))


def version_row(version: Version, files: Sequence[ManifestFile]) -> VersionRow:
    """One of them."""
    file = next((one for one in files if one.name == version.file), None)
    label = version.file if file is None else file_label(files, file)
    return VersionRow(
        version.id,
        version.at,
        version.by,
        label,
        version.summary,
        version.size_bytes,
        f"{MANIFEST}/history/{version.id}",
        "" if file is None else file.sha256,
    )


def ways_page(shell: Shell, model: str, answers: Sequence[WayAnswer]) -> WaysPage:
    """The page of a model's ways."""
    before = given(answers[0].before) if answers else given(None)
    return WaysPage(shell, model, model_url(model), before, tuple(_way(answer) for answer in answers))


def way_form(way: Way) -> str:
    """A way as a field of a form."""
    return json.dumps([[list(edit.path), edit.value, edit.owner] for edit in way.edits])


def read_way(text: str) -> Way:
    """The way of a form. Raises ValueError for anything else."""
    try:
        given = json.loads(text)
        # Half of a character that takes two is in no manifest.
        json.dumps(given, ensure_ascii=False).encode()
        edits = [FieldEdit(tuple(map(str, path)), value, owner) for path, value, owner in given]
    except (TypeError, RecursionError) as error:
        raise ValueError(text) from error
    if not edits or any(edit.owner not in ("model", "policy") or not edit.path for edit in edits):
        raise ValueError(text)
    return Way("", tuple(edits))


def edit_text(path: Sequence[str], value: object) -> str:
    """`models.a.slots = 2`, for people."""
    name = dotted(tuple(path))
    return f"{name} taken out" if value is None else f"{name} = {_value(value)}"


def _way(answer: WayAnswer) -> WayRow:
    return WayRow(
        answer.code,
        answer.way.sentence,
        "; ".join(edit_text(change.path, change.value) for change in answer.changes),
        given(answer.after),
        new_reasons(answer.before, answer.after),
        answer.problems[0].sentence if answer.after is None and answer.problems else "",
        way_form(answer.way),
    )


def _problem(problem: Problem, file: str) -> ProblemRow:
    line = problem.line if problem.file == file else 0
    url = "" if line or not problem.line else manifest_url(problem.file)
    return ProblemRow(problem, line, problem.column, f"#line-{line}" if line else url)


def _gutter(rows: int, problems: Iterable[ProblemRow]) -> tuple[GutterPart, ...]:
    tones: dict[int, str] = {}
    for row in problems:
        if 0 < row.line <= rows and tones.get(row.line) != "bad":
            tones[row.line] = "bad" if row.problem.severity == "error" else "wait"
    parts, done = [], 0
    for line in sorted(tones):
        parts += [GutterPart(_numbers(done + 1, line - 1), 0, ""), GutterPart(str(line), line, tones[line])]
        done = line
    parts.append(GutterPart(_numbers(done + 1, rows), 0, ""))
    return tuple(part for part in parts if part.text)


def _numbers(first: int, last: int) -> str:
    return "\n".join(str(number) for number in range(first, last + 1))


def _change(one: Mapping[str, object]) -> ChangeRow:
    field = str(one["field"])
    before, after = (value_with_unit(field, value) or _value(value) for value in (one["from"], one["to"]))
    return ChangeRow(field, before, after, EFFECTS[one["effect"]], str(one["why"]))


def _value(value: object) -> str:
    if value is None:
        return "unset"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return shorten(text, LONGEST_VALUE, placeholder=" …") or '""'
