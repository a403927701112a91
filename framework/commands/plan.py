"""`paddock plan`: memory, command line and reasons of every instance, without starting anything (13 §2).

Needs no server, but asks one that runs this manifest: it knows what its models hold of a pool's budget.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from framework import state_dir
from framework.api.answers import PlanAnswer
from framework.api.facts import list_all_devices, plan_all
from framework.api.shapes import plan_json
from framework.commands import parsers
from framework.commands.ending import run_to_its_end
from framework.commands.failure import NOT_SO, OK, CommandFailed
from framework.commands.local import model_id, require_manifest
from framework.commands.memory_table import print_memory, print_verdict
from framework.commands.options import JsonOption, ManifestOption
from framework.commands.output import note, print_json, print_reason, print_table, say
from framework.commands.running import find_running
from framework.commands.spec_lines import BY_ARGUMENTS, decision_text
from framework.engines.probe import CapabilityCache
from framework.hardware.device_cache import DeviceCache
from framework.models.hub.facts import ResolvedSource
from framework.models.hub.sources import OnProgress
from framework.runtime.planner import FactPlanner
from framework.values.manifest import Manifest
from framework.values.plan import LaunchPlan
from framework.values.request import ModelRequest
from framework.values.units_text import count, tokens

OneModelArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL]",
        parser=parsers.text("MODEL"),
        help="Only this model, by name or alias.",
        show_default=False,
    ),
]
MeasureOption = Annotated[
    bool,
    typer.Option("--measure", help="Let the engines measure the memory; nothing is loaded or downloaded."),
]
# Reasons of a measurement that was asked for and could not be had.
UNMEASURED = frozenset({"measure_failed", "measure_unsupported"})
COLUMNS = ("", "ASKED", "GRANTED")
ROWS = ("context", "slots", "kv_cache", "speculation", "offload")


def command(
    model: OneModelArgument = None,
    manifest: ManifestOption = None,
    measure: MeasureOption = False,
    as_json: JsonOption = False,
) -> int:
    """Print memory, command lines and reasons, start nothing."""
    declared = require_manifest(manifest)
    only = None if model is None else model_id(model, declared)
    answer = None if measure else _from_server(manifest, declared, only)
    if answer is None:
        answer = plan_json(run_to_its_end(_plan(declared, only, measure=measure)))
    if only is not None:
        # What concerns this model its own plan says; the rest is about engines and pools of others.
        answer = {**answer, "reasons": []}
    if as_json:
        print_json(answer)
    else:
        _print_all(answer)
    refused = any(instance["granted"] is None for instance in answer["instances"])
    codes = {reason["code"] for instance in answer["instances"] for reason in instance["reasons"]}
    return NOT_SO if refused or UNMEASURED & codes else OK


def _from_server(path: Path | None, declared: Manifest, only: str | None) -> dict[str, Any] | None:
    """The plan of our running server; None where none runs, or one that has another text in force."""
    if (running := find_running(path)) is None:
        return None
    client, status = running
    if _manifest_of(status) != declared.sha256:
        return None
    try:
        answer: dict[str, Any] = client.get("/plan")
    except CommandFailed:
        return None
    if _manifest_of(answer) != declared.sha256:
        # It has read another text meanwhile.
        return None
    note("As the running server plans it, beside what it has loaded.")
    wanted = [instance for instance in answer["instances"] if only in (None, instance["model"])]
    return {**answer, "instances": wanted}


def _manifest_of(answer: dict[str, Any]) -> object:
    """The SHA-256 of the text that an answer is about."""
    return answer.get("manifest", {}).get("sha256")


async def _plan(manifest: Manifest, only: str | None, *, measure: bool) -> PlanAnswer:
    cache = DeviceCache()
    planner = FactPlanner(
        CapabilityCache(),
        os.environ,
        devices=cache,
        base_dir=manifest.path.absolute().parent,
        state_dir=state_dir.locate(manifest.path, manifest.server.state_dir),
    )
    planner.adopt(manifest)
    devices = await list_all_devices(manifest, os.environ, cache.get)
    return await plan_all(manifest, _Measuring(planner) if measure else planner, devices, only=only)


class _Measuring:
    """A planner that lets engines measure, and says so; the replicas of a model are measured once."""

    def __init__(self, planner: FactPlanner) -> None:
        self._planner = planner

    async def fetch(self, request: ModelRequest, progress: OnProgress) -> ResolvedSource:
        return await self._planner.fetch(request, progress)

    async def plan(
        self, request: ModelRequest, replica: int, source: ResolvedSource | None = None
    ) -> LaunchPlan:
        if replica == 0:
            note(f"{request.id}: its engine measures the memory, nothing is loaded")
        return await self._planner.measure(request, replica, anew=replica == 0)


def _print_all(answer: dict[str, Any]) -> None:
    """Every instance, then what none of them said."""
    for instance in answer["instances"]:
        print_plan(instance)
    said = [reason["message"] for instance in answer["instances"] for reason in instance["reasons"]]
    for reason in answer["reasons"]:
        if reason["message"] not in said:
            print_reason(reason)


def print_plan(instance: dict[str, Any]) -> None:
    """One instance: asked beside granted, its memory, its command line, its reasons."""
    told = instance["speculation"]
    asked = {**instance["asked"], "speculation": told["asked"] or BY_ARGUMENTS}
    granted = {**(instance["granted"] or {}), "speculation": decision_text(told)}
    say(f"{instance['model']}, replica {instance['replica']}, engine {instance['engine']}", "bold")
    print_table(
        COLUMNS, [(f"  {row}", _value(asked[row], row), _value(granted.get(row), row)) for row in ROWS]
    )
    if instance["fit"] is not None:
        print_memory(instance["fit"])
        print_verdict(instance["fit"])
    if instance["argv"]:
        say(f"  {shlex.join(instance['argv'])}")
    for reason in (*([told["reason"]] if told["reason"] else ()), *instance["reasons"]):
        print_reason(reason, owner=reason["severity"], indent="  ")
    say("")


def _value(value: Any, row: str) -> str | None:
    if isinstance(value, dict):
        return ", ".join(f"{name} {part}" for name, part in value.items())
    if type(value) is int:
        return tokens(value) if row == "context" else count(value)
    return None if value is None else str(value)
