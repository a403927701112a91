"""`paddock plan`: command line and reasons of every instance, without starting anything (13 §2)."""

from __future__ import annotations

import asyncio
import os
import shlex
from typing import Annotated, Any

import typer

from framework.api.answers import PlanAnswer
from framework.api.facts import list_all_devices, plan_all
from framework.api.shapes import plan_json
from framework.commands import parsers
from framework.commands.failure import NOT_SO, OK
from framework.commands.local import model_id, require_manifest
from framework.commands.options import JsonOption, ManifestOption
from framework.commands.output import print_json, print_reason, print_table, say
from framework.engines.probe import CapabilityCache
from framework.runtime.planner import FactPlanner
from framework.values.manifest import Manifest

OneModelArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL]",
        parser=parsers.text("MODEL"),
        help="Only this model, by name or alias.",
        show_default=False,
    ),
]
COLUMNS = ("", "ASKED", "GRANTED")
ROWS = ("context", "slots", "kv_cache", "speculation", "offload")


def command(
    model: OneModelArgument = None, manifest: ManifestOption = None, as_json: JsonOption = False
) -> int:
    """Print command lines and reasons, start nothing."""
    declared = require_manifest(manifest)
    only = None if model is None else model_id(model, declared)
    answer = plan_json(asyncio.run(_plan(declared, only)))
    if as_json:
        print_json(answer)
    else:
        for instance in answer["instances"]:
            _print(instance)
        for reason in answer["reasons"]:
            print_reason(reason)
    refused = any(instance["granted"] is None for instance in answer["instances"])
    return NOT_SO if refused else OK


async def _plan(manifest: Manifest, only: str | None) -> PlanAnswer:
    planner = FactPlanner(CapabilityCache(), os.environ, base_dir=manifest.path.absolute().parent)
    planner.secret_names = manifest.secret_names
    devices = await list_all_devices(manifest, os.environ)
    return await plan_all(manifest, planner, devices, only=only)


def _print(instance: dict[str, Any]) -> None:
    asked, granted = instance["asked"], instance["granted"] or {}
    say(f"{instance['model']}, replica {instance['replica']}, engine {instance['engine']}", "bold")
    print_table(COLUMNS, [(f"  {row}", _value(asked[row]), _value(granted.get(row))) for row in ROWS])
    if instance["argv"]:
        say(f"  {shlex.join(instance['argv'])}")
    for reason in instance["reasons"]:
        print_reason(reason, owner=reason["severity"], indent="  ")
    say("")


def _value(value: Any) -> str | None:
    if isinstance(value, dict):
        return ", ".join(f"{name} {part}" for name, part in value.items())
    return None if value is None else str(value)
