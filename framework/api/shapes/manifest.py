"""Files of the manifest, edits of it, and what an edit would do to memory, as JSON (13 §8, §9)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from framework.api.answers import ModelOutlook, Outlook, RefusedInstance, WayAnswer
from framework.api.shapes.basic import at, plain, reason_json
from framework.api.shapes.memory import fit_json
from framework.api.shapes.plan import granted_json
from framework.editing.documents import ManifestFile
from framework.editing.editor import Written, summary_of
from framework.editing.history import Version
from framework.manifest.edit import Change
from framework.manifest.key_paths import dotted
from framework.values.plan import LaunchPlan
from framework.values.problem import Problem
from framework.values.problem import as_json as problem_json


def manifest_json(
    path: Path, sha256: str, problems: Iterable[Problem], texts: Iterable[tuple[ManifestFile, str]]
) -> dict[str, Any]:
    """The files as they are now, with what is wrong with them. `texts` may hide what not everybody sees."""
    found = list(problems)
    files = [
        {"file": file.name, "path": str(file.path), "sha256": file.sha256, "text": text}
        for file, text in texts
    ]
    return {
        "ok": not any(problem.severity == "error" for problem in found),
        "manifest": {"path": str(path), "sha256": sha256},
        "problems": [problem_json(problem) for problem in found],
        "text": files[0]["text"] if files else "",
        "files": files,
    }


def written_json(written: Written) -> dict[str, Any]:
    """What an apply came to. `version` holds what was replaced, null where nothing was written."""
    return {
        "accepted": True,
        "event_id": written.event.id,
        "file": written.file,
        "sha256": written.sha256,
        "version": None if written.version is None else written.version.id,
        "summary": summary_of(written.actions),
    }


def version_json(version: Version) -> dict[str, Any]:
    """A text that was replaced: when, by whom, and by what that changed."""
    return {
        "id": version.id,
        "at": at(version.at),
        "by": version.by,
        "file": version.file,
        "sha256": version.sha256,
        "replaced_by_sha256": version.replaced_by_sha256,
        "size_bytes": version.size_bytes,
        "summary": version.summary,
    }


def outlook_json(memory: Outlook) -> dict[str, Any]:
    """Memory before and after an apply, by device and by changed model."""
    return {
        "devices": [
            {
                "device": one.device,
                "pool": one.pool,
                "total_bytes": one.total_bytes,
                "before_bytes": one.before_bytes,
                "after_bytes": one.after_bytes,
            }
            for one in memory.devices
        ],
        "models": [_model_json(one) for one in memory.models],
        "unplanned": memory.unplanned,
    }


def way_json(answer: WayAnswer) -> dict[str, Any]:
    """An edit that may help, with what the planner makes of it."""
    return {
        "code": answer.code,
        "sentence": answer.way.sentence,
        "file": answer.file,
        "edits": [change_json(change) for change in answer.changes],
        "before": _given_json(answer.before),
        "after": _given_json(answer.after),
        "problems": [problem_json(problem) for problem in answer.problems],
    }


def change_json(change: Change) -> dict[str, Any]:
    """A value at a path, which `/manifest/edit` takes as it is; `field` is the same for people."""
    return {
        "path": list(change.path),
        "field": dotted(change.path),
        "value": plain(change.value, change.path[-1]),
    }


def _model_json(model: ModelOutlook) -> dict[str, Any]:
    return {
        "model": model.model,
        "ran": model.ran,
        "runs": model.runs,
        "before": _given_json(model.before),
        "after": _given_json(model.after),
    }


def _given_json(plan: LaunchPlan | RefusedInstance | None) -> dict[str, Any] | None:
    """What a plan gives; null where there is none."""
    if plan is None:
        return None
    if isinstance(plan, RefusedInstance):
        return {"granted": None, "fit": None, "reasons": [reason_json(plan.failure.reason)]}
    reasons = [reason_json(reason) for reason in (*plan.reasons, *plan.spec.notes)]
    return {"granted": granted_json(plan), "fit": fit_json(plan.fit), "reasons": reasons}
