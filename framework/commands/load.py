"""`paddock load`: start a model and wait until it is ready."""

from __future__ import annotations

from framework.commands.giving import give
from framework.commands.options import JsonOption, ManifestOption, ModelArgument, UrlOption, WaitOption


def command(
    model: ModelArgument,
    wait: WaitOption = True,
    manifest: ManifestOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> int:
    """Start a model and wait until it serves."""
    return give("load", model, manifest=manifest, url=url, wait=wait, as_json=as_json)
