"""`paddock devices`: the memories that models can live in, named as the engines do (04 §2.5)."""

from __future__ import annotations

import asyncio
import os

from framework.api.facts import list_all_devices
from framework.api.shapes import devices_json, reason_json
from framework.commands.failure import OK
from framework.commands.local import require_manifest
from framework.commands.options import JsonOption, ManifestOption
from framework.commands.output import print_json, print_reason, print_table
from framework.values.units_text import size

COLUMNS = ("DEVICE", "KIND", "TOTAL", "FREE", "POOL", "WHAT IT IS")


def command(manifest: ManifestOption = None, as_json: JsonOption = False) -> int:
    """Show the memories that the engines see, by pool."""
    declared = require_manifest(manifest)
    answer = asyncio.run(list_all_devices(declared, os.environ))
    if as_json:
        print_json(devices_json(answer))
        return OK
    rows = [
        (d.name, d.kind, size(d.total_bytes), size(d.free_bytes), d.pool, d.description or None)
        for d in answer.devices
    ]
    print_table(COLUMNS, rows)
    for reason in answer.reasons:
        print_reason(reason_json(reason))
    return OK
