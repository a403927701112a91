"""Process settings: what `PADDOCK_*` variables say, and the `[server]` keys they override (01 §2.9).

Read once per command. The texts of overrides are checked by the manifest package, with everything else.
Variables that name engines (`PADDOCK_LLAMA_SERVER`, `PADDOCK_LLAMA_CPP`) are read by their discovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "PADDOCK_"
AUTO = "auto"
SERVER_KEYS = (
    "listen",
    "state_dir",
    "max_waiting",
    "max_body",
    "start_concurrency",
    "shutdown",
    "request_log",
    "on_exit",
    "cors",
)
"""Keys of `[server]` that can be overridden; each is a field of `Settings` too."""


class Settings(BaseSettings):
    """All variables of the process."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True, env_ignore_empty=True)

    manifest: Path = Path("serve.toml")
    """The manifest of all commands, relative to the working directory."""
    url: str | None = None
    """Address of a running server, for the commands that talk to one; None finds it by the manifest."""
    key: SecretStr | None = None
    """Access key for a server that is not the manifest's own, which knows us by its token."""
    listen: str | None = None
    state_dir: str | None = None
    max_waiting: str | None = None
    max_body: str | None = None
    start_concurrency: str | None = None
    shutdown: str | None = None
    request_log: str | None = None
    on_exit: str | None = None
    cors: str | None = None

    def overrides(self, flags: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """The `[server]` keys that flags or variables set, as texts; a flag wins."""
        given = flags or {}
        texts = {key: given.get(key) or getattr(self, key) for key in SERVER_KEYS}
        return {key: _from_here(text) if key == "state_dir" else text for key, text in texts.items() if text}


def _from_here(text: str) -> str:
    """A path as the shell means it: relative to the working directory, not to the manifest."""
    return text if text == AUTO else str(Path(text).expanduser().absolute())
