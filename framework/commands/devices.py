"""`paddock devices`: the memories that models can live in, named as the engines do (04 §2.5).

Needs no server, but asks a running one: an RPC server that serves one of its models answers nobody else.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from framework.api.facts import list_all_devices
from framework.api.shapes import devices_json
from framework.commands.failure import OK, CommandFailed
from framework.commands.local import require_manifest
from framework.commands.options import JsonOption, ManifestOption
from framework.commands.output import note, print_json, print_reason, print_table
from framework.commands.running import find_running
from framework.values.units_text import size

COLUMNS = ("DEVICE", "KIND", "TOTAL", "FREE", "OTHERS", "BUSY", "POOL", "WHERE", "WHAT IT IS")


def command(manifest: ManifestOption = None, as_json: JsonOption = False) -> int:
    """Show the memories that the engines see, by pool."""
    declared = require_manifest(manifest)
    answer, own = _from_server(manifest) or (None, frozenset[int]())
    if answer is None:
        answer = devices_json(asyncio.run(list_all_devices(declared, os.environ)))
    if as_json:
        print_json(answer)
        return OK
    print_table(COLUMNS, [_row(device, own) for device in answer["devices"]])
    for reason in answer["reasons"]:
        print_reason(reason)
    return OK


def _from_server(manifest: Path | None) -> tuple[dict[str, Any], frozenset[int]] | None:
    """What our running server lists, and the processes of its engines; None where none runs."""
    if (running := find_running(manifest)) is None:
        return None
    client, status = running
    try:
        answer = client.get("/devices")
    except CommandFailed:
        return None
    note("As the running server lists them.")
    instances = (instance for model in status["models"] for instance in model["instances"])
    return answer, frozenset(instance["pid"] for instance in instances if instance["pid"] is not None)


def _row(device: Mapping[str, Any], own: Collection[int]) -> tuple[object, ...]:
    others = {int(pid): used for pid, used in device["used_by_pid"].items() if int(pid) not in own}
    busy = device["utilisation"]
    where = f"rpc://{device['endpoint']}" if device["endpoint"] else device["bus_id"]
    same = f" (the same card as {device['same_as']})" if device["same_as"] else ""
    return (
        device["name"],
        device["kind"],
        size(device["total_bytes"]),
        size(device["free_bytes"]),
        size(sum(others.values())) if device["used_by_pid"] else None,
        None if busy is None else f"{busy:.0%}",
        device["pool"],
        where or None,
        f"{device['description']}{same}" or None,
    )
