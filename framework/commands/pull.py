"""`paddock pull`: download the files of a model into the cache, without a server (02 §10)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from framework.commands.failure import BAD_INPUT, NOT_SO, OK, CommandFailed
from framework.commands.local import model_id, require_manifest
from framework.commands.options import JsonOption, ManifestOption
from framework.commands.output import err, note, print_json, safe, say
from framework.manifest.bad_value import BadValue
from framework.manifest.texts import parse_source
from framework.models.file_set import resolve_files
from framework.models.hub.facts import ResolvedSource, hub_text, source_text
from framework.models.hub.sources import HubSources, OnProgress
from framework.runtime.fetching import fetch_files
from framework.values.instance import LoadProgress
from framework.values.reason import Refused
from framework.values.request import ModelRequest, ModelSource, SpecPolicy
from framework.values.units_text import duration, size

HUB = "hf:"
SourceArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="Name or alias of a model, or hf:owner/repo:QUANT.")
]


def command(model: SourceArgument, manifest: ManifestOption = None, as_json: JsonOption = False) -> int:
    """Download a model into the cache; an interrupted download goes on where it stopped."""
    hub = model.startswith(HUB)
    request = _asked(model) if hub else _declared(model, manifest)
    try:
        found = _pull(request)
    except Refused as refusal:
        reason = refusal.failure.reason
        raise CommandFailed(NOT_SO, reason.message, reason.remedy) from refusal
    if as_json:
        print_json(_as_json(found))
    else:
        _print(found)
    return OK


def _pull(request: ModelRequest) -> ResolvedSource:
    if request.source.path is not None:
        resolve_files(request.source.path)
    terminal = err()
    shown: AbstractContextManager[OnProgress] = _Bar() if terminal.is_terminal else nullcontext(_Lines())
    try:
        with shown as progress:
            return asyncio.run(_fetch(request, progress))
    except KeyboardInterrupt:
        note("interrupted; what has come is kept, and the next pull goes on from there")
        raise


async def _fetch(request: ModelRequest, progress: OnProgress) -> ResolvedSource:
    return await fetch_files(HubSources(os.environ), request, progress, by_command=True)


def _asked(text: str) -> ModelRequest:
    """A source alone, without anything that would belong to it."""
    try:
        written = parse_source(text)
    except BadValue as error:
        raise CommandFailed(BAD_INPUT, f"{text!r} must be {error.must_be}.") from error
    source = ModelSource(repo=written.repo, variant=written.variant, file=written.file)
    return ModelRequest(text, source, spec=SpecPolicy("off"))


def _declared(name: str, manifest: Path | None) -> ModelRequest:
    """A model of the manifest, which gets its projector and its drafter, too."""
    declared = require_manifest(manifest)
    return declared.models[model_id(name, declared)]


class _Bar:
    """One bar on the terminal."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=err(),
            transient=True,
            # Its stand-ins for the streams would print through this console, which prints to those streams.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("looking", total=None)

    def __enter__(self) -> Callable[[LoadProgress], None]:
        self._progress.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _show(self, now: LoadProgress) -> None:
        self._progress.update(
            self._task,
            description=safe(now.file),
            completed=now.loaded_bytes,
            total=now.total_bytes or None,
        )


class _Lines:
    """A line for each tenth, where there is no terminal."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, now: LoadProgress) -> None:
        tenths = int(now.fraction * 10) * 10
        text = f"{now.file}: {tenths} % of {size(now.total_bytes)}"
        if text != self._said:
            note(text)
            self._said = text


def _print(found: ResolvedSource) -> None:
    for reason in (*found.notes, *found.drafter_notes):
        note(reason.message)
    hub = hub_text(found)
    if not hub:
        note(f"{found.main} is a file of this machine; there is nothing to download")
    elif found.fetched_bytes:
        note(f"{hub}: {size(found.fetched_bytes)} in {duration(found.elapsed_s)}")
    elif found.drafter is not None or found.drafter_source is None:
        note(f"{hub}: in the cache already")
    say(str(found.main))


def _as_json(found: ResolvedSource) -> dict[str, Any]:
    return {
        "source": source_text(found.source),
        "path": str(found.main),
        "files": [str(path) for path in found.files],
        "projector": None if found.projector is None else str(found.projector),
        "drafter": None if found.drafter is None else str(found.drafter),
        "variant": found.label,
        "revision": found.revision,
        "from_cache": found.from_cache,
        "fetched_bytes": found.fetched_bytes,
        "elapsed_s": round(found.elapsed_s, 3),
    }
