"""`paddock reload`: replace the process of a model unconditionally (07 §3.11)."""

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
    """Replace the process of a model, changed or not."""
    return give("reload", model, manifest=manifest, url=url, wait=wait, as_json=as_json)
