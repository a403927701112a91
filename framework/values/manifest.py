"""The manifest as values: what `serve.toml` and its includes declare, after validation (01 §1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hmac import compare_digest
from pathlib import Path
from typing import Literal

from framework.values.engine import EngineRef
from framework.values.rate import Rate
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
class Tls:
    """`[server] tls`: files in PEM form, and what was in both when they were read."""

    certificate: Path
    key: Path
    sha256: str

    def __str__(self) -> str:
        return str(self.certificate)


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
    tls: Tls | None = None
    cors: tuple[str, ...] = ()
    """Origins of pages that may call the endpoint, in lower case, or `*`."""
    on_exit: Literal["stop", "keep"] = "stop"
    """Whether processes that are started from now on end with the manager."""


@dataclass(frozen=True)
class AccessKey:
    """`[access.NAME]`. Only the SHA-256 of the key is kept, in lower-case hex; `models` holds ids, aliases or
    `*`. A limit of None is none; `tokens` counts prompts and answers together."""

    name: str
    key_sha256: str
    models: tuple[str, ...] = ("*",)
    dashboard: DashboardRole = "none"
    rate: Rate | None = None
    concurrency: int | None = None
    tokens: Rate | None = None


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

    def key_of(self, digest: str) -> AccessKey | None:
        """The access key with this SHA-256, None when there is none; takes as long for many keys as for one.

        Where in the table a digest lies tells nothing about the key: nobody can choose the digest of a guess.
        """
        found = self._keys.get(digest)
        return found if found is not None and compare_digest(found.key_sha256, digest) else None

    @cached_property
    def _keys(self) -> Mapping[str, AccessKey]:
        return {key.key_sha256: key for key in self.access}

    def resolve(self, name: str) -> str | None:
        """The id of the model with this name or alias, compared exactly; None when there is none."""
        if name in self.models:
            return name
        for model_id, request in self.models.items():
            if name in request.live.aliases:
                return model_id
        return None
