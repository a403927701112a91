"""`paddock engines`: which engine binaries were found and what they can do (13 §9). Needs no server."""

from __future__ import annotations

import asyncio
import os

from framework.api.answers import EngineAnswer
from framework.api.facts import list_engines
from framework.api.shapes import engines_json, reason_json
from framework.commands.failure import NOT_SO, OK
from framework.commands.local import require_manifest
from framework.commands.options import JsonOption, ManifestOption
from framework.commands.output import print_json, print_reason, print_table
from framework.engines.probe import CapabilityCache

COLUMNS = ("ENGINE", "KIND", "BINARY", "FOUND BY", "VERSION", "SPECULATION")


def command(manifest: ManifestOption = None, as_json: JsonOption = False) -> int:
    """Show which engines were found and what they can do."""
    declared = require_manifest(manifest)
    answers = asyncio.run(list_engines(declared, os.environ, CapabilityCache()))
    if as_json:
        print_json(engines_json(answers))
    else:
        print_table(COLUMNS, [_row(answer) for answer in answers])
        for answer in answers:
            for reason in answer.reasons:
                print_reason(reason_json(reason), owner=answer.ref.name)
    return OK if all(answer.binary is not None for answer in answers) else NOT_SO


def _row(answer: EngineAnswer) -> tuple[object, ...]:
    binary, caps = answer.binary, answer.capabilities
    return (
        answer.ref.name,
        answer.ref.kind,
        None if binary is None else binary.entry,
        None if binary is None else binary.origin,
        None if caps is None else caps.version,
        None if caps is None else ", ".join(caps.spec_types),
    )
