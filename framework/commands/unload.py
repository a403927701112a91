"""`paddock unload`: stop a model and wait until its process is gone (07 §5.1)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from framework.commands.giving import give
from framework.commands.options import JsonOption, ManifestOption, ModelArgument, UrlOption, WaitOption


class Mode(StrEnum):
    """How a model is stopped."""

    DRAIN = "drain"
    NOW = "now"
    KILL = "kill"


ModeOption = Annotated[
    Mode,
    typer.Option("--mode", help="drain: finish requests first; now: cancel them; kill: end the process."),
]


def command(
    model: ModelArgument,
    mode: ModeOption = Mode.DRAIN,
    wait: WaitOption = True,
    manifest: ManifestOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> int:
    """Stop a model until `load` or a change of it."""
    body = {"mode": mode.value}
    return give("unload", model, manifest=manifest, url=url, wait=wait, as_json=as_json, body=body)
