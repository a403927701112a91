"""The manifest as values: what `serve.toml` and its includes declare, after validation (01 §1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from framework.values.engine import EngineRef
from framework.values.request import ModelRequest, PoolLimits, SpecPolicy
from framework.values.request_record import RequestLogMode

DashboardRole = Literal["none", "view", "operate"]
MIB = 2**20


@dataclass(frozen=True)
class Listener:
    """Address of the endpoint and the dashboard."""

    host: str = "127.0.0.1"
    port: int = 8080

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class ServerSettings:
    """`[server]`. `state_dir` is None for `auto` (01 §2.11)."""

    listen: Listener = Listener()
    state_dir: Path | None = None
    max_waiting: int = 64
    max_body_bytes: int = 64 * MIB
    start_concurrency: int = 2
    shutdown_s: float = 30.0
    request_log: RequestLogMode = "metadata"
    on_exit: Literal["stop", "keep"] = "stop"
    """Whether processes that are started from now on end with the manager."""


@dataclass(frozen=True)
class AccessKey:
    """`[access.NAME]`. Only the SHA-256 of the key is kept; `models` holds ids, aliases or `*`."""

    name: str
    key_sha256: str
    models: tuple[str, ...] = ("*",)
    dashboard: DashboardRole = "none"


@dataclass(frozen=True)
class Manifest:
    """A valid manifest. Mappings keep the order of the file."""

    path: Path
    sha256: str
    """Over the text of `path` and of every included file, in reading order."""
    files: tuple[Path, ...]
    """All files read: `path` first, then includes. Watched for changes."""
    include_patterns: tuple[str, ...] = ()
    server: ServerSettings = ServerSettings()
    access: tuple[AccessKey, ...] = ()
    engines: Mapping[str, EngineRef] = field(default_factory=dict)
    pools: Mapping[str, PoolLimits] = field(default_factory=dict)
    speculation: Mapping[str, SpecPolicy] = field(default_factory=dict)
    models: Mapping[str, ModelRequest] = field(default_factory=dict)
    secret_names: tuple[str, ...] = ()
    """Environment variables that `env:` references name; they never reach a child (06 §7.1)."""

    def resolve(self, name: str) -> str | None:
        """The id of the model with this name or alias, compared exactly; None when there is none."""
        if name in self.models:
            return name
        for model_id, request in self.models.items():
            if name in request.live.aliases:
                return model_id
        return None
