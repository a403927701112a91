"""`paddock replan`: plan a model anew, and replace its process where that changes something (07 §3.11)."""

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
    """Plan a model with the memory of now; replace its process only where that changes something."""
    return give("replan", model, manifest=manifest, url=url, wait=wait, as_json=as_json)
