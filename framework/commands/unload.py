"""`paddock unload`: stop a model and wait until its process is gone (07 §5.1)."""

from __future__ import annotations

from typing import Annotated

import typer

from framework.commands import parsers
from framework.commands.giving import give
from framework.commands.options import JsonOption, ManifestOption, ModelArgument, UrlOption, WaitOption
from framework.values.action import STOP_MODES, StopMode

ModeOption = Annotated[
    StopMode,
    typer.Option(
        "--mode",
        metavar="|".join(STOP_MODES),
        parser=parsers.one_of("--mode", STOP_MODES),
        help="drain: finish requests first; now: cancel them; kill: end the process.",
    ),
]


def command(
    model: ModelArgument,
    mode: ModeOption = STOP_MODES[0],
    wait: WaitOption = True,
    manifest: ManifestOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> int:
    """Stop a model until `load` or a change of it."""
    body = {"mode": mode}
    return give("unload", model, manifest=manifest, url=url, wait=wait, as_json=as_json, body=body)
