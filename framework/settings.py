"""Process settings: what `PADDOCK_*` variables say, and the `[server]` keys they override (01 §2.9).

Read once per command. The texts of overrides are checked by the manifest package, with everything else.
Variables that name engines (`PADDOCK_LLAMA_SERVER`, `PADDOCK_LLAMA_CPP`) are read by their discovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from framework.values.override import Override

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

    def overrides(self, flags: Mapping[str, str | None] | None = None) -> dict[str, Override]:
        """The `[server]` keys that flags or variables set; a flag wins."""
        found = {
            key: Override(text, PREFIX + key.upper()) for key in SERVER_KEYS if (text := getattr(self, key))
        }
        for key, flag in (flags or {}).items():
            if flag is not None:
                found[key] = Override(flag, f"--{key.replace('_', '-')}")
        return {key: _from_here(one) if key == "state_dir" else one for key, one in found.items()}


def _from_here(directory: Override) -> Override:
    """A path as the shell means it: relative to the working directory, not to the manifest."""
    text = directory.text
    if text == AUTO or not text.strip():
        return directory
    return Override(str(Path(text).expanduser().absolute()), directory.origin)
