"""Answers about a manifest and a machine as JSON: check, diff, engines, devices, doctor (13 §4, §9)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from framework.api.answers import DevicesAnswer, DiffAnswer, DoctorCheck, EngineAnswer
from framework.api.shapes.basic import device_json, optional_at, optional_reason_json, plain, reason_json
from framework.api.shapes.manifest import outlook_json
from framework.values.action import FieldChange, ModelAction
from framework.values.engine import Capabilities
from framework.values.problem import Problem
from framework.values.problem import as_json as problem_json


def check_json(path: Path, sha256: str, problems: Iterable[Problem]) -> dict[str, Any]:
    """The answer of a check. Warnings alone leave it ok."""
    found = tuple(problems)
    return {
        "ok": not any(problem.severity == "error" for problem in found),
        "manifest": {"path": str(path), "sha256": sha256},
        "problems": [problem_json(problem) for problem in found],
    }


def diff_json(answer: DiffAnswer) -> dict[str, Any]:
    """What an apply would do. `problems` are those of the text; with an error there are no actions."""
    return {
        "actions": [action_json(action) for action in answer.actions],
        "problems": [problem_json(problem) for problem in answer.problems],
        "notices": list(answer.notices),
        "memory": None if answer.memory is None else outlook_json(answer.memory),
    }


def engine_json(answer: EngineAnswer) -> dict[str, Any]:
    """One engine table and what was found for it; null where nothing was."""
    binary, caps = answer.binary, answer.capabilities
    return {
        "name": answer.ref.name,
        "kind": answer.ref.kind,
        "path": None if binary is None else str(binary.entry),
        "origin": None if binary is None else binary.origin,
        "version": None if caps is None else caps.version,
        "build": None if caps is None else caps.build,
        "conclusive": caps is not None and caps.conclusive,
        "capabilities": {} if caps is None else _capabilities_json(caps),
        "removed": {} if caps is None else dict(caps.removed),
        "reasons": [reason_json(reason) for reason in answer.reasons],
    }


def engines_json(answers: Iterable[EngineAnswer]) -> dict[str, Any]:
    """All engine tables."""
    return {"engines": [engine_json(answer) for answer in answers]}


def devices_json(answer: DevicesAnswer) -> dict[str, Any]:
    """All devices, when they were listed, and why some engine could not say which it sees."""
    return {
        "sampled_at": optional_at(answer.sampled_at),
        "devices": [device_json(device) for device in answer.devices],
        "reasons": [reason_json(reason) for reason in answer.reasons],
    }


def doctor_json(checks: Iterable[DoctorCheck]) -> dict[str, Any]:
    """All checks in the order they were made."""
    return {
        "checks": [
            {"name": check.name, "ok": check.ok, "reason": optional_reason_json(check.reason)}
            for check in checks
        ]
    }


def action_json(action: ModelAction) -> dict[str, Any]:
    """One action of an apply, with its causes by field."""
    return {
        "kind": action.kind,
        "model": action.model,
        "replica": action.replica,
        "changes": [_change_json(change) for change in action.changes],
        "reasons": [reason_json(reason) for reason in action.reasons],
    }


def _change_json(change: FieldChange) -> dict[str, Any]:
    name = change.field.rpartition(".")[2]
    return {
        "field": change.field,
        "from": plain(change.old, name),
        "to": plain(change.new, name),
        "effect": change.effect,
        "why": change.why,
    }


def _capabilities_json(caps: Capabilities) -> dict[str, Any]:
    return {
        "flags": sorted(caps.flags),
        "spec_types": list(caps.spec_types),
        "mtp_token": caps.mtp_token,
        "ngram_flavour": caps.ngram_flavour,
        "depth_flag": caps.depth_flag,
        "drafter_flag": caps.drafter_flag,
    }
