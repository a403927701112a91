"""May a browser page have sent this? Tests of `Host` and `Origin` for an open endpoint. Pure.

Without access tables the listener is on loopback and whoever reaches it may use it. A web page elsewhere
reaches it too, through the visitor's browser: under a name that it made resolve to 127.0.0.1 (then `Host` is
that name), or across origins (then `Origin` is not ours). Programs that are no browsers send neither.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from framework.proxy.cors import is_allowed
from framework.proxy.errors import ProxyError
from framework.values.manifest import Listener

LOCAL_NAME = "localhost"
WEB_SCHEMES = ("http", "https")


def check_origin(
    host: str | None, origin: str | None, listener: Listener, cors: tuple[str, ...] = ()
) -> None:
    """Raises ProxyError `host_not_allowed` or `origin_not_allowed`; `host` and `origin` are header values.

    `cors` are other origins that the manifest allows.
    """
    if host is not None and not _names_us(host, listener):
        raise ProxyError(
            "host_not_allowed",
            f"This server answers under localhost, an IP address or {listener.host}, not under the name in "
            "the Host header. Use one of those, or declare [access] tables.",
        )
    if origin is not None and not same_origin(origin, host) and not is_allowed(origin, cors):
        raise ProxyError(
            "origin_not_allowed",
            "Requests from web pages of other origins are refused. Call the endpoint from a program, or "
            "from a page of this server, or name the origin in server.cors.",
        )


def same_origin(origin: str, host: str | None) -> bool:
    """Whether the values of `Origin` and `Host` name the same address."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return host is not None and parts.scheme in WEB_SCHEMES and parts.netloc.lower() == host.lower()


def _names_us(host: str, listener: Listener) -> bool:
    name = _host_name(host)
    if name is None:
        return False
    if name in (LOCAL_NAME, listener.host.lower()) or name.endswith("." + LOCAL_NAME):
        return True
    try:
        # An address cannot be made to mean another machine; only names can.
        ip_address(name)
    except ValueError:
        return False
    return True


def _host_name(host: str) -> str | None:
    if "@" in host or "/" in host:
        return None
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
