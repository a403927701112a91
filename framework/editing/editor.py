"""Apply a new text of the manifest, or go back to one of before (01 §2.7). Called by API and pages.

Order of an apply: (1) the file that is meant, (2) is it still what the edit began with, (3) is the new text
right, (4) keep the old one, (5) write. What fails leaves everything as it was. The watcher does the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from framework.editing.disk import changed_underneath, replace_content
from framework.editing.documents import ManifestFile, digest_of, files_of, written_as
from framework.editing.history import History, Version
from framework.editing.refusal import EditRefused
from framework.manifest.document import MAX_FILE_BYTES
from framework.manifest.load import Loaded
from framework.reconcile.accidents import without_accidents
from framework.reconcile.actions import plan_actions
from framework.reconcile.current import CurrentManifest
from framework.telemetry.events import EventLog, utc_now
from framework.values.action import ActionKind, ModelAction
from framework.values.event import Event
from framework.values.instance import ModelView
from framework.values.problem import Problem
from framework.values.reason import Reason
from framework.values.units_text import counted

# An event is one line.
NAMED_ACTIONS = 4
VERBS: dict[ActionKind, str] = {
    "start": "starts {}",
    "replace": "replaces {}",
    "live": "changes {} while it runs",
    "record": "changes {} for its next start",
    "stop": "removes {}",
}
NEW_VERBS: dict[ActionKind, str] = {"start": "adds and starts {}", "record": "adds {}"}
"""Of models that were not declared before."""
NOTHING_MOVES = "changes no model"


class LoadText(Protocol):
    """Load the manifest with a text in place of one of its files, or as it is on disk. Blocking."""

    def __call__(self, text: str | None = None, file: str | None = None) -> Loaded:
        """What it comes to. `file` is a name as problems have it; None is the manifest itself."""
        ...


@dataclass(frozen=True)
class Edit:
    """A new text of a file. `base_sha256` is of what the file held when the edit began."""

    text: str
    base_sha256: str
    file: str | None = None
    is_form: bool = False
    """A form knows only one kind of line end; the file keeps its own."""


@dataclass(frozen=True)
class Written:
    """What an apply came to. `version` is what can be gone back to; None where the text was there already."""

    event: Event
    file: str
    sha256: str
    version: Version | None
    actions: tuple[ModelAction, ...] = ()


class Editor:
    """Writes the manifest in force, one edit after the other."""

    def __init__(
        self,
        load: LoadText,
        current: CurrentManifest,
        views: Callable[[], Iterable[ModelView]],
        history: History,
        events: EventLog,
        *,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._load = load
        self._current = current
        self._views = views
        self._history = history
        self._events = events
        self._now = now
        self._lock = asyncio.Lock()

    async def check(self, text: str | None = None, file: str | None = None) -> Loaded:
        """What a text in place of a file comes to, or the files as they are."""
        loaded = await asyncio.to_thread(self._load, text, file)
        return without_accidents(loaded, self._current.manifest)

    async def files(self) -> tuple[ManifestFile, ...]:
        """The files as they are on disk, the manifest first."""
        return files_of(await asyncio.to_thread(self._load))

    async def file(self, name: str | None) -> ManifestFile:
        """One of them, the manifest itself for None. Raises EditRefused."""
        return _named(await self.files(), name)

    async def apply(self, edit: Edit, *, by: str) -> Written:
        """Write a text that is right and based on what is there. Raises EditRefused."""
        async with self._lock:
            on_disk = await asyncio.to_thread(self._load)
            file = _named(files_of(on_disk), edit.file)
            is_main = edit.file in (None, main_name(on_disk))
            # What `GET /manifest` gives of all files together will do as well.
            if edit.base_sha256 not in (file.sha256, on_disk.sha256 if is_main else ""):
                raise EditRefused(changed_underneath(file.path, file.sha256, edit.base_sha256))
            encoded = edit.text.encode("utf-8", "surrogatepass")
            raw = written_as(edit.text, file.raw) if edit.is_form else encoded
            return await self._write(file, raw, by, "edited")

    async def revert(self, number: int | None = None, base_sha256: str | None = None, *, by: str) -> Written:
        """Put back what a version held; the newest one undoes the last apply. Without a base the file must
        still be what that apply wrote. Raises EditRefused, and KeyError for a version that is not there."""
        async with self._lock:
            version, raw = await self._recall(number)
            file = _named(await self.files(), version.file)
            base = base_sha256 or version.replaced_by_sha256
            if file.sha256 != base:
                raise EditRefused(changed_underneath(file.path, file.sha256, base))
            return await self._write(file, raw, by, f"put back to version {version.id}")

    async def versions(self) -> tuple[Version, ...]:
        """What can be gone back to, newest first."""
        return await asyncio.to_thread(self._history.versions)

    async def version(self, number: int) -> tuple[Version, str]:
        """One of them with its text. Raises KeyError."""
        version, raw = await self._recall(number)
        return version, ManifestFile(version.file, self._current.manifest.path, raw).text

    async def _recall(self, number: int | None) -> tuple[Version, bytes]:
        def recall() -> tuple[Version, bytes]:
            found = self._history.versions()
            version = next((one for one in found if number in (None, one.id)), None)
            if version is None:
                raise KeyError(number)
            return version, self._history.text_of(version)

        return await asyncio.to_thread(recall)

    async def _write(self, file: ManifestFile, raw: bytes, by: str, verb: str) -> Written:
        if raw == file.raw:
            event = self._record(f"{file.path.name} has this text already; nothing to do", by, file, None)
            return Written(event, file.name, file.sha256, None)
        loaded = await self.check(raw.decode("utf-8", "surrogateescape"), file.name)
        _require_right(loaded, raw)
        assert loaded.manifest is not None
        actions = tuple(plan_actions(loaded.manifest.models, self._views()))
        summary, sha256 = summary_of(actions), digest_of(raw)

        def keep_and_write() -> tuple[Version, int]:
            version = self._history.keep(file, sha256, at=self._now(), by=by, summary=summary)
            try:
                return version, replace_content(file.path, raw, file.sha256)
            except BaseException:
                self._history.drop(version.id)
                raise

        # Shielded: a caller that leaves must not end an apply between its two halves.
        version, left = await asyncio.shield(asyncio.to_thread(keep_and_write))
        told = f"{file.path.name} {verb} by {by}: {summary}{_other_names(left)}"
        event = self._record(told, by, file, version)
        return Written(event, file.name, sha256, version, actions)

    def _record(self, message: str, by: str, file: ManifestFile, version: Version | None) -> Event:
        data: dict[str, str | int] = {"command": "manifest", "by": by, "file": file.name}
        if version is not None:
            data |= {"version": version.id, "sha256": version.replaced_by_sha256}
        return self._events.record("command", message, data=data)


def _other_names(number: int) -> str:
    if not number:
        return ""
    return (
        f"; {counted(number, 'other name')} of the file (hard links) keep{'s' * (number == 1)} the old text"
    )


def main_name(loaded: Loaded) -> str:
    """The name that problems give the manifest itself."""
    return next(iter(loaded.sources))


def summary_of(actions: Sequence[ModelAction]) -> str:
    """What an apply does to models, in one line."""
    moving = [action for action in actions if action.kind != "none"]
    told = [_verb(action).format(action.model) for action in moving[:NAMED_ACTIONS]]
    more = len(moving) - len(told)
    return "; ".join([*told, *([f"and {more} more"] if more else [])]) or NOTHING_MOVES


def _verb(action: ModelAction) -> str:
    return (action.is_addition and NEW_VERBS.get(action.kind)) or VERBS[action.kind]


def invalid(problems: Sequence[Problem]) -> Reason:
    """A text with errors is never written."""
    errors = [problem for problem in problems if problem.severity == "error"]
    first, more = errors[0], len(errors) - 1
    return Reason(
        "manifest_invalid",
        f"The text has errors and was not written: {first.sentence}"
        + (f" (and {more} more)." if more else "."),
        "Correct what is listed; what runs goes on as before.",
        "error",
        {"errors": len(errors)},
    )


def _require_right(loaded: Loaded, raw: bytes) -> None:
    if len(raw) > MAX_FILE_BYTES:
        raise EditRefused(
            Reason(
                "manifest_invalid",
                f"The text has {len(raw)} bytes; at most {MAX_FILE_BYTES} are read. Nothing was written.",
                "Divide it into several files that `include` names.",
                "error",
                {"bytes": len(raw), "limit_bytes": MAX_FILE_BYTES},
            )
        )
    if loaded.manifest is None:
        raise EditRefused(invalid(loaded.problems), loaded.problems)


def _named(files: Sequence[ManifestFile], name: str | None) -> ManifestFile:
    found = next((file for file in files if name in (None, file.name)), None)
    if found is None:
        names = ", ".join(file.name for file in files)
        raise EditRefused(
            Reason(
                "manifest_file_unknown",
                f"{name!r} is no file of this manifest (any more); there is {names}.",
                "Take one of these, or add it to `include`.",
                "error",
                {"files": [file.name for file in files]},
            )
        )
    return found
