"""A client's request that has ended, as the request log keeps it (13 §9 `Request`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

RequestLogMode = Literal["off", "metadata", "full"]
"""What `[server] request_log` keeps of a request: nothing, its numbers, or its texts too."""
TEXTS_LIMIT_BYTES = 64 * 2**10
"""What the texts of one request take at most."""


@dataclass(frozen=True)
class RequestTexts:
    """What was asked and answered, cut to what the log keeps. `asked` holds the fields of the body."""

    asked: Mapping[str, Any]
    answered: Mapping[str, str]
    """By `content`, `reasoning_content` and `tool_calls`; of a further choice it is `content[1]`."""
    is_cut: bool
    """Whether something was left out."""


@dataclass(frozen=True)
class RequestRecord:
    """A request that has ended. `key` is the name of an access table; counts are tokens."""

    id: str
    at: datetime
    route: str
    model: str | None
    replica: int | None
    key: str | None
    status: int
    queue_s: float
    first_token_s: float | None
    total_s: float
    prompt_tokens: int | None
    cached_tokens: int | None
    generated_tokens: int | None
    drafted: int | None
    accepted: int | None
    stop_reason: str | None
    error: str | None
    instance: str | None = None
    """The last instance that it was sent to, `<model>.<replica>@<generation>`."""
    stream: bool | None = None
    """Whether a stream was asked for; None where that was never known, or makes no sense."""
    retried: bool = False
    """Whether it was sent again, after the connection to its first instance broke."""
    prompt_s: float | None = None
    """By the engine's clock, for the part of the prompt that its cache did not have."""
    generation_s: float | None = None
    """By the engine's clock."""
    prompt_tokens_per_s: float | None = None
    """By the engine's counts and clock; None where it tells none."""
    generation_tokens_per_s: float | None = None
    texts: RequestTexts | None = None
