"""What every command starts with: settings, the path of the manifest, a client for the running server."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from framework.commands.client import ApiClient
from framework.commands.failure import UNREACHABLE, CommandFailed
from framework.commands.parsers import refusal
from framework.commands.target import find_target
from framework.settings import PREFIX, Settings


def read_settings() -> Settings:
    """The process settings. Raises CommandFailed for a variable that cannot be read."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        variable = PREFIX + str(first["loc"][0]).upper()
        # All are texts, so that nothing else can be wrong with them.
        raise refusal(variable, str(first["input"]), "text in UTF-8") from error


def manifest_path(settings: Settings, flag: Path | None) -> Path:
    """The manifest that a command is about."""
    return flag or settings.manifest


def connect(manifest: Path | None, url: str | None) -> ApiClient:
    """A client for the running server. Nothing is sent yet.

    Raises CommandFailed for an address that is none, and when nothing can prove us to our own server.
    """
    settings = read_settings()
    target = find_target(settings, manifest_path(settings, manifest), url)
    if target.fault is not None:
        raise CommandFailed(UNREACHABLE, target.fault.message, target.fault.remedy)
    return ApiClient(target)
