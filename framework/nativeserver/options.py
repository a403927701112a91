"""What the server was started with, after flags and environment were read (12 §19-20).

Made by nativeserver.command_line; read by everything that answers requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CorsOptions:
    """Headers for browsers (12 §2.3)."""

    origins: str = "*"
    methods: str = "GET, POST, DELETE, OPTIONS"
    headers: str = "*"
    credentials: bool = True


@dataclass(frozen=True)
class ChatOptions:
    """How chats become prompts and replies become messages (12 §8)."""

    jinja: bool = True
    template: str | None = None
    """The text of a template, or None for the model's own."""
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    reasoning_format: str = "auto"
    reasoning: str = "auto"
    """`on`, `off` or `auto`: what `enable_thinking` is for templates that know it."""
    reasoning_budget: int = -1
    reasoning_budget_message: str = ""
    reasoning_effort: str | None = None
    prefill_assistant: bool = True
    skip_parsing: bool = False


@dataclass(frozen=True)
class ServerOptions:
    """Everything the HTTP side reads; `engine` goes to the core."""

    engine: Mapping[str, Any]
    """Attributes of the core's EngineParams that were given or differ from its defaults, by name."""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8080
    reuse_port: bool = False
    api_prefix: str = ""
    api_keys: tuple[str, ...] = ()
    ssl_key_file: Path | None = None
    ssl_cert_file: Path | None = None
    cors: CorsOptions = CorsOptions()
    timeout_s: int = 3600
    sse_ping_interval_s: int = 30
    """-1: never."""
    metrics: bool = False
    props: bool = False
    slots: bool = True
    slot_save_path: Path | None = None
    embeddings: bool = False
    reranking: bool = False
    request_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of request fields that the command line set, by the field's name (`temperature`, ...)."""
    chat: ChatOptions = ChatOptions()
    spm_infill: bool = False
    speculation_types: tuple[str, ...] = ()
    """Types that were asked for, in order, without `none`."""
    verbosity: int = 3
    """As llama-server numbers it: 1 errors, 2 warnings, 3 info, 4 trace, 5 debug."""

    @property
    def undrafted_types(self) -> tuple[str, ...]:
        """Those that the core isn't told of: a server of embeddings generates nothing to draft."""
        return self.speculation_types if self.embeddings or self.reranking else ()
