"""Take a manifest text from the disk to the fleet: load, compare, apply, or say what is wrong (07 §3.13).

Called by reconcile.watch for every settled change of a file, by SIGHUP, and once at the start. A manifest
that fails leaves everything as it is (01 §2.5).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from textwrap import shorten
from typing import Protocol

from framework.manifest.includes import matching_files
from framework.manifest.load import Loaded
from framework.reconcile.accidents import without_accidents
from framework.reconcile.actions import plan_actions
from framework.reconcile.change_values import value_with_unit
from framework.reconcile.compare import request_digest
from framework.reconcile.current import CurrentManifest
from framework.telemetry.events import EventLog, utc_now
from framework.values.action import ActionKind, FieldChange, ModelAction
from framework.values.instance import ModelView
from framework.values.manifest import Manifest, ServerSettings
from framework.values.problem import Problem, as_json
from framework.values.reason import Reason

log = logging.getLogger(__name__)

# These are read once, when the listener opens (01 §1.1).
NEXT_UP_FIELDS = ("listen", "state_dir")
# A template or a list of arguments may be long; an event is one line.
LONGEST_VALUE = 60
# Each event is kept; `paddock check` and the page Manifest have all that is wrong with a file.
MOST_PROBLEMS = 20
WORDS: Mapping[ActionKind, str] = {"record": "noted", "live": "changed while it runs"}
"""Words for actions whose names say little."""


class Effects(Protocol):
    """What an apply needs of the fleet. Implemented by runtime.fleet."""

    def views(self) -> Iterable[ModelView]:
        """Snapshots of all models."""
        ...

    def apply(self, manifest: Manifest, actions: Sequence[ModelAction]) -> None:
        """Carry out the actions; returns at once, the work goes on."""
        ...


@dataclass(frozen=True)
class Applied:
    """What an apply came to. `actions` is empty when the file was refused."""

    loaded: Loaded
    actions: tuple[ModelAction, ...] = ()

    @property
    def removes(self) -> bool:
        """Whether the apply takes a model away that is declared now."""
        return any(action.kind == "stop" for action in self.actions)


class Reconciler:
    """Owns the current manifest. `read` loads the files and is run in a thread."""

    def __init__(
        self,
        current: CurrentManifest,
        read: Callable[[], Loaded],
        effects: Effects,
        events: EventLog,
        *,
        adopt: Callable[[Manifest], None],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.current = current
        self._read = read
        self._effects = effects
        self._events = events
        self._adopt = adopt
        self._now = now
        self._newest: Loaded | None = None
        self._started_with: ServerSettings = current.manifest.server
        self._generation = 0

    def begin(self) -> None:
        """Apply the manifest that was loaded before the start."""
        _log_warnings(self.current.problems)
        self._carry_out(self.current.manifest)

    async def load(self) -> Applied:
        """Read the files as they are now and plan the apply; nothing changes."""
        loaded = without_accidents(await asyncio.to_thread(self._read), self.current.manifest)
        self._newest = loaded
        if loaded.manifest is None:
            return Applied(loaded)
        return Applied(loaded, tuple(plan_actions(loaded.manifest.models, self._effects.views())))

    def watched(self) -> tuple[Path, ...]:
        """Every file whose change may matter: of the manifest in force and of the newest text, good or bad.

        A text that is refused may be healed by a file that only it names.
        """
        manifest = self.current.manifest
        sources = [(manifest.files, manifest.include_patterns)]
        if self._newest is not None:
            sources.append((self._newest.files, self._newest.include_patterns))
        found = [manifest.path]
        for files, patterns in sources:
            found += files
            for pattern in patterns:
                found += matching_files(manifest.path.parent, pattern)
        return tuple(dict.fromkeys(found))

    def accept(self, applied: Applied, *, asked: bool = False) -> None:
        """Put what `load` found into force, or keep it out and say why. `asked`: a person wants an answer."""
        manifest, problems = applied.loaded.manifest, applied.loaded.problems
        if manifest is None:
            self._refuse(applied.loaded)
            return
        _log_warnings(problem for problem in problems if problem not in self.current.problems)
        fixed, self.current.problems = bool(self.current.problems), problems
        # Not the digest of the text alone: a rotated key changes the manifest and no file of it.
        if manifest == self.current.manifest:
            if asked or fixed:
                self._events.record(
                    "manifest_loaded",
                    "the manifest is as it was; nothing to do",
                    data={"sha256": manifest.sha256, **_counts(())},
                )
            self._events.touch()
            return
        self._carry_out(manifest)

    def refresh(self, applied: Applied) -> None:
        """Show the findings of the text in force as they are now; apply nothing."""
        if applied.loaded.manifest == self.current.manifest:
            self.current.problems = applied.loaded.problems
            self._events.touch()

    def _carry_out(self, manifest: Manifest) -> None:
        # Planned again in this turn of the loop: what runs may have changed since the file was read.
        actions = plan_actions(manifest.models, self._effects.views())
        self._generation += 1
        keys_before = self.current.manifest.access
        self.current.manifest = manifest
        self.current.loaded_at = self._now()
        self.current.server_notices = self.notices(manifest)
        counts = _counts(actions)
        access = "; access changed" if keys_before != manifest.access else ""
        self._events.record(
            "manifest_loaded",
            f"generation {self._generation} applied: {counts['added']} added, {counts['changed']} changed,"
            f" {counts['removed']} removed{access}",
            data={
                "sha256": manifest.sha256,
                "generation": self._generation,
                **counts,
                "problems": [as_json(problem) for problem in self.current.problems[:MOST_PROBLEMS]],
            },
        )
        for notice in self.current.server_notices:
            self._events.record("manifest_loaded", notice)
        for action in actions:
            if action.kind != "none":
                self._report(manifest, action)
        self._adopt(manifest)
        self._effects.apply(manifest, actions)

    def _refuse(self, loaded: Loaded) -> None:
        if loaded.problems == self.current.problems:
            return
        self.current.problems = loaded.problems
        errors = [problem for problem in loaded.problems if problem.severity == "error"]
        warnings = [problem for problem in loaded.problems if problem.severity != "error"]
        first, more = errors[0], len(errors) - 1
        text = first.sentence + (f" (and {more} more)" if more else "")
        told = [as_json(problem) for problem in [*errors, *warnings][:MOST_PROBLEMS]]
        reason = Reason(
            "manifest_rejected",
            text,
            "Correct the file; until then everything runs on as before.",
            "error",
            {"problems": told},
        )
        data = {"sha256": loaded.sha256, "problems": told}
        self._events.record("manifest_rejected", text, reason=reason, data=data)

    def _report(self, manifest: Manifest, action: ModelAction) -> None:
        request = manifest.models.get(action.model)
        changes = [{"field": c.field, "effect": c.effect, "why": c.why} for c in action.changes]
        self._events.record(
            "applied",
            f"{WORDS.get(action.kind, action.kind)}: {', '.join(_told(change) for change in action.changes)}",
            model=action.model,
            data={
                "action": action.kind,
                "digest": request_digest(request) if request else None,
                "changes": changes,
            },
        )

    def notices(self, manifest: Manifest) -> tuple[str, ...]:
        """What of `[server]` in a manifest waits for the next `up`, as sentences."""
        return tuple(_notices(self._started_with, manifest.server))


def _log_warnings(problems: Iterable[Problem]) -> None:
    """What is wrong with a text that is taken all the same; pages and `paddock status` show it, too."""
    for problem in problems:
        if problem.severity == "warning":
            log.warning("%s [%s]", problem.sentence, problem.code)


def _notices(started_with: ServerSettings, server: ServerSettings) -> Iterable[str]:
    if (started_with.tls is None) != (server.tls is None):
        then, now = ("HTTPS", "plain HTTP") if server.tls is not None else ("plain HTTP", "HTTPS")
        yield f"server.tls: {then} is served from the next `paddock up` on; now {now}"
    for name in NEXT_UP_FIELDS:
        old, new = getattr(started_with, name), getattr(server, name)
        if old != new:
            yield f"server.{name}: {new or 'auto'} is used from the next `paddock up` on; now {old or 'auto'}"


def _counts(actions: Iterable[ModelAction]) -> dict[str, int]:
    counts = {"added": 0, "changed": 0, "removed": 0}
    for action in actions:
        if action.kind == "stop":
            counts["removed"] += 1
        elif any(change.field == f"models.{action.model}" for change in action.changes):
            counts["added"] += 1
        elif action.changes:
            counts["changed"] += 1
    return counts


def _told(change: FieldChange) -> str:
    if change.field.startswith("models."):
        return change.why
    old, new = (
        value_with_unit(change.field, value) or shorten(_text(value), LONGEST_VALUE, placeholder=" ...")
        for value in (change.old, change.new)
    )
    return f"{change.field} {old} -> {new}"


def _text(value: object) -> str:
    """A value much as the manifest has it."""
    if value is None:
        return "unset"
    if isinstance(value, bool | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
