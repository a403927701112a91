"""`[server]` and `[access.NAME]`: where the endpoint listens and who may use it (01 §1)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from framework.manifest.table import Table, option
from framework.manifest.texts import SecretRef
from framework.manifest.value_types import (
    Address,
    BodyLimit,
    DurationOrZero,
    Key,
    Name,
    Origin,
    RateLimit,
    SecretFile,
    StateDir,
    whole,
)
from framework.values.manifest import ServerSettings

NEXT_UP = "next `up`"
DEFAULT = ServerSettings()
NO_SECRET = SecretRef("env", "")


class TlsTable(Table):
    """Certificate and key of an encrypted endpoint."""

    required: ClassVar[tuple[str, ...]] = ("certificate", "key")

    certificate: SecretFile = option(NO_SECRET, effect="live")
    """Chain of certificates in PEM form, as `file:PATH`. Once the file changes, new connections get what it
    says then."""
    key: SecretFile = option(NO_SECRET, effect="live")
    """Private key in PEM form without a password, as `file:PATH`."""


class ServerTable(Table):
    """The endpoint and the dashboard; they share one address."""

    listen: Address = option(DEFAULT.listen, written=str(DEFAULT.listen), effect=NEXT_UP)
    """Address and port. The default is reachable from this machine only; any other address needs `[access]`
    tables."""
    tls: TlsTable | None = option(None, effect=NEXT_UP)
    """Serve HTTPS with this certificate, TLS 1.2 and up. Absent: plain HTTP."""
    max_waiting: Annotated[int, whole(1, 100_000)] = option(DEFAULT.max_waiting, effect="live")
    """Requests that may wait over all models together; further ones get 503 at once instead of a time-out
    later."""
    request_log: Literal["off", "metadata", "full"] = option(DEFAULT.request_log, effect="live")
    """What is kept of each request to the endpoint: nothing, its numbers, or its texts too. Texts are erased
    as soon as this is not `full` any more."""
    on_exit: Literal["stop", "keep"] = option(DEFAULT.on_exit, effect="live")
    """Whether engines end with `up`, or go on and are taken over by the next one. A process keeps to what was
    set when it started."""
    state_dir: StateDir = option(None, written="auto", effect=NEXT_UP)
    """Private directory for logs, run files and the operator's token. `auto`: one per manifest in the
    user's state directory."""
    start_concurrency: Annotated[int, whole(1, 64)] = option(DEFAULT.start_concurrency, effect="live")
    """Instances that may be starting at once. More of them fight over the disk and load slower together."""
    shutdown: DurationOrZero = option(DEFAULT.shutdown_s, written="30s", effect="live")
    """How long an orderly end may take before engines are killed."""
    max_body: BodyLimit = option(DEFAULT.max_body_bytes, written="64MiB", effect="live")
    """Largest request body. The default has room for images and long documents."""
    cors: list[Origin] = option([], effect="live")
    """Origins of web pages that may call the endpoint, or `*` for all of them, which needs `[access]` tables.
    `/api/v1` and the dashboard never answer to other origins. Empty: none."""


class AccessTable(Table):
    """A key that clients present. Without such tables the endpoint is open on loopback and refused
    elsewhere."""

    required: ClassVar[tuple[str, ...]] = ("key",)

    key: Key = option(NO_SECRET, effect="live")
    """Where the key lies: `env:NAME` or `file:PATH`; or its SHA-256, which `paddock key` prints with a new
    key. Only the digest is kept in memory."""
    models: list[Name] = option(["*"], effect="live")
    """Models that this key may use, by id or alias; `*` is all."""
    dashboard: Literal["none", "view", "operate"] = option("none", effect="live")
    """What the key may do on the dashboard and at `/api/v1`: nothing, look, or act."""
    rate: RateLimit | None = option(None, effect="live")
    """Requests per time; the others get 429 and the time to wait. Only requests to a model count. Rates of
    more than 1,000 are estimated from two windows of a period each, so that the wait may be longer than a
    period, twice that at most. Absent: no limit."""
    concurrency: Annotated[int, whole(1, 100_000)] | None = option(None, effect="live")
    """Requests to models at once, those that wait included. Absent: no limit."""
    tokens: RateLimit | None = option(None, effect="live")
    """Tokens per time, prompt and generated together. A request that has begun is finished; what it takes too
    much counts against the next. Estimated like a large `rate`. Kept over restarts. Absent: no limit."""
    full_tools: bool = option(False, effect="live")
    """Whether requests with this key may run server-side tools without asking."""
