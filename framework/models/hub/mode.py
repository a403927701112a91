"""Whether a load may use the network at all (02 §8). Decided once per load, before anything is fetched.

Called by hub.sources. The answer is a value that is passed down; the environment of this process is never
changed, and nothing is remembered, so that a passing fault of the network cannot keep it offline.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

PROBE_S = 2.0
DEFAULT_ENDPOINT = "https://huggingface.co"
TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")

Resolve = Callable[[str], object]


@dataclass(frozen=True)
class HubMode:
    """The mode of one load, and what decided it."""

    offline: bool
    reason: Literal["env", "dns", "proxy", "online"]
    detail: str = ""
    """The variable, or the host that has no address."""


def hub_mode(
    environ: Mapping[str, str], *, resolve: Resolve | None = None, limit_s: float = PROBE_S
) -> HubMode:
    """The mode now. Blocks for at most `limit_s`; `resolve` raises OSError for a host without address."""
    forced = environ.get("HF_HUB_OFFLINE")
    if forced is not None:
        return HubMode(is_on(forced), "env", "HF_HUB_OFFLINE")
    for variable in ("TRANSFORMERS_OFFLINE", "PADDOCK_OFFLINE"):
        if is_on(environ.get(variable, "")):
            return HubMode(True, "env", variable)
    if any(environ.get(variable) for variable in PROXY_VARIABLES):
        # Behind a proxy local names may not resolve although the hub can be reached.
        return HubMode(False, "proxy")
    host = endpoint_host(environ)
    if _resolves_in_time(host, resolve or _look_up, limit_s):
        return HubMode(False, "online")
    return HubMode(True, "dns", host)


def is_on(text: str) -> bool:
    """The switch rule of every on/off variable."""
    return text.strip().lower() in TRUE_WORDS


def endpoint(environ: Mapping[str, str]) -> str:
    """The hub's address, without a slash at the end."""
    return (environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")


def endpoint_host(environ: Mapping[str, str]) -> str:
    """The host of the hub's address; the default's where the address cannot be read."""
    try:
        host = urlsplit(endpoint(environ)).hostname
    except ValueError:
        host = None
    return host or "huggingface.co"


def _look_up(host: str) -> object:
    return socket.getaddrinfo(host, None)


def _resolves_in_time(host: str, resolve: Resolve, limit_s: float) -> bool:
    """Asked on a thread of its own: a resolver cannot be given a time limit."""
    answered: list[bool] = []

    def ask() -> None:
        try:
            resolve(host)
        except (OSError, UnicodeError):
            answered.append(False)
        else:
            answered.append(True)

    thread = threading.Thread(target=ask, name="hub name resolution", daemon=True)
    thread.start()
    thread.join(limit_s)
    return answered == [True]
