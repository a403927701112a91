"""The running server of a manifest, for commands that do without one too: `plan`, `devices`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from framework.commands.client import ApiClient
from framework.commands.context import manifest_path, read_settings
from framework.commands.failure import CommandFailed
from framework.commands.target import find_target

# Our own server answers at once; whoever else listens there may never do.
PROBE_TIMEOUT_S = 2.0


def find_running(manifest: Path | None) -> tuple[ApiClient, dict[str, Any]] | None:
    """A client for the running server and its status; None where none answers."""
    settings = read_settings()
    try:
        target = find_target(settings, manifest_path(settings, manifest), None)
        status = ApiClient(target, answer_timeout_s=PROBE_TIMEOUT_S).get("/status")
    except CommandFailed:
        return None
    return (ApiClient(target), status) if isinstance(status, dict) else None
