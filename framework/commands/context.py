"""What every command starts with: settings, the path of the manifest, a client for the running server."""

from __future__ import annotations

from pathlib import Path

from framework.commands.client import ApiClient
from framework.commands.failure import UNREACHABLE, CommandFailed
from framework.commands.parsers import refusal
from framework.commands.target import find_target
from framework.settings import PREFIX, Settings

NOT_SHOWN = "(not shown)"


def read_settings() -> Settings:
    """The process settings. Raises CommandFailed for an address or key that no request can carry."""
    settings = Settings()
    if settings.url is not None and not settings.url.isprintable():
        raise refusal(f"{PREFIX}URL", settings.url, "an address without control characters, in UTF-8")
    if settings.key is not None and not settings.key.get_secret_value().isprintable():
        raise refusal(f"{PREFIX}KEY", NOT_SHOWN, "a key without control characters, in UTF-8")
    return settings


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
