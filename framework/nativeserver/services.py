"""What endpoints share; kept at the application as `app.state.services`."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import HTTPConnection

from framework.chat.template import ChatTemplate
from framework.nativeserver.bridge import EngineBridge
from framework.nativeserver.options import ServerOptions


def _media_marker() -> str:
    return f"<__media_{secrets.token_hex(16)}__>"


@dataclass
class Services:
    """Made by app. Until `created_at` is set, every request is told that the model is loading."""

    options: ServerOptions
    bridge: EngineBridge
    model_name: str
    started_at: int
    """Unix seconds."""
    templates: ChatTemplate | None = None
    """Set when the model is loaded; None: it has no chat template."""
    created_at: int = 0
    """Unix seconds of the load."""
    media_marker: str = field(default_factory=_media_marker)
    """Stands for media in prompts; new at every start, so that no text can pretend to be one."""
    bytes_being_read: int = 0
    """Of bodies of requests whose end has not come; kept by transport."""
    default_params: Any = None
    """GenerationParams of a request that says nothing; made by props when first asked for."""

    @property
    def fingerprint(self) -> str:
        """`system_fingerprint` of answers, and `build_info`."""
        meta = self.bridge.meta
        return meta.library_version if meta is not None and meta.library_version else "paddock-native"


def services_of(connection: HTTPConnection) -> Services:
    """The services of the application that serves this request."""
    services: Services = connection.app.state.services
    return services
