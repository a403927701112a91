"""The manifest for commands that work without a server."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from framework.commands.context import manifest_path, read_settings
from framework.commands.failure import BAD_INPUT, CommandFailed
from framework.commands.output import note
from framework.manifest.load import Loaded, load_manifest
from framework.proxy.model_choice import nearest_names
from framework.settings import Settings
from framework.tls import Certificate
from framework.values.manifest import Manifest
from framework.values.problem import Problem


def load(path: Path, settings: Settings) -> Loaded:
    """Read and check a manifest, with the environment and the overrides of this process."""
    return Certificate(None).check(load_manifest(path, os.environ, overrides=settings.overrides()))


def require_manifest(flag: Path | None) -> Manifest:
    """The manifest, without errors. Raises CommandFailed with the first error; `check` shows all."""
    settings = read_settings()
    loaded = load(manifest_path(settings, flag), settings)
    if loaded.manifest is None:
        raise broken_manifest(loaded.problems)
    for problem in loaded.problems:
        note(f"warning: {problem.sentence} [{problem.code}]")
    return loaded.manifest


def model_id(name: str, manifest: Manifest) -> str:
    """The id of a model by its name or alias. Raises CommandFailed with names like it."""
    found = manifest.resolve(name)
    if found is None:
        known = [n for request in manifest.models.values() for n in (request.id, *request.live.aliases)]
        near = ", ".join(nearest_names(name, known))
        raise CommandFailed(
            BAD_INPUT, f"There is no model {name!r} in {manifest.path}.", near and f"Near: {near}."
        )
    return found


def broken_manifest(problems: Iterable[Problem]) -> CommandFailed:
    """The end of a command that needs a good manifest."""
    errors = [problem for problem in problems if problem.severity == "error"]
    first = errors[0]
    # A suggestion is in the sentence already.
    allowed = f" (allowed: {first.allowed})" if first.allowed and not first.suggestion else ""
    more = f"(more errors: {len(errors) - 1}; see `paddock check`)" if len(errors) > 1 else ""
    return CommandFailed(BAD_INPUT, f"{first.sentence}{allowed}", more)
