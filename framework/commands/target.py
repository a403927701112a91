"""Find the running server of a manifest, and what proves us to it (13 §8).

Order: `--url`, `PADDOCK_URL`, the address that `up` left in the state directory, `PADDOCK_LISTEN`, the
listener of the file, the default. The file may be broken at the moment: it is read leniently here.
The token goes to the manifest's own server only, never to another address that somebody typed.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from framework import state_dir
from framework.commands.parsers import refusal
from framework.manifest.addresses import is_loopback, parse_address
from framework.manifest.bad_value import BadValue
from framework.manifest.document import read_document
from framework.manifest.findings import Findings
from framework.settings import AUTO, PREFIX, Settings
from framework.values.manifest import Listener
from framework.values.reason import Reason

URL_VARIABLE = f"{PREFIX}URL"
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Target:
    """A server. `credential` goes into `Authorization`; `found_by` tells where the address is from."""

    scheme: str
    listener: Listener
    credential: str | None
    found_by: str
    state_dir: Path
    """Where the manifest's own server keeps its state, whichever server this is."""
    certificate: Path | None = None
    """The certificate that our own server shows, where it serves HTTPS; None trusts those that others vouch
    for."""
    fault: Reason | None = None
    """Why the files of our own server that find it and prove us cannot be used; None when they can."""

    @property
    def url(self) -> str:
        """For messages."""
        return f"{self.scheme}://{self.listener}"


def find_target(settings: Settings, manifest: Path, url: str | None) -> Target:
    """The server to talk to. Raises CommandFailed for an address that is none."""
    server = _server_table(manifest)
    directory = state_dir.locate(manifest, _chosen_dir(settings, server, manifest))
    recorded = state_dir.read_listener(directory)
    own_scheme, own = _own_address(settings, server, recorded)
    typed = url or settings.url
    found_by = f"the listener of {manifest}" if typed is None else "--url" if url else URL_VARIABLE
    scheme, address = (own_scheme, _reachable(own)) if typed is None else _parse_url(typed, found_by)
    if typed is None or (scheme == own_scheme and _same_server(address, own)):
        certificate = directory / state_dir.CERTIFICATE_FILE if scheme == "https" else None
        token, fault = state_dir.read_token(directory), state_dir.find_reading_fault(directory)
        return Target(scheme, address, token, found_by, directory, certificate, fault)
    key = settings.key.get_secret_value() if settings.key is not None else None
    return Target(scheme, address, key, found_by, directory)


def _server_table(manifest: Path) -> dict[str, Any]:
    """`[server]` of a file that may be missing or broken; what is wrong with it is no matter here."""
    table = read_document(manifest.absolute(), str(manifest), Findings()).data.get("server")
    return table if isinstance(table, dict) else {}


def _chosen_dir(settings: Settings, server: dict[str, Any], manifest: Path) -> Path | None:
    """The state directory that is named anywhere; one in the file is relative to it."""
    override = settings.overrides().get("state_dir")
    named = server.get("state_dir") if override is None else override.text
    if not isinstance(named, str) or named == AUTO:
        return None
    return manifest.absolute().parent / Path(named).expanduser()


def _own_address(settings: Settings, server: dict[str, Any], recorded: str | None) -> tuple[str, Listener]:
    """Scheme and address of our own server."""
    written = "https" if isinstance(server.get("tls"), dict) else "http"
    if recorded is not None:
        scheme, mark, recorded = recorded.rpartition("://")
        written = scheme if mark else "http"
    return written, _first_address(settings, server, recorded)


def _first_address(settings: Settings, server: dict[str, Any], recorded: str | None) -> Listener:
    for text in (recorded, settings.listen, server.get("listen")):
        if text is None:
            continue
        try:
            return parse_address(text)
        except BadValue:
            continue
    return Listener()


def _reachable(listener: Listener) -> Listener:
    """An address to connect to: a listener on all addresses is reached on loopback."""
    try:
        address = ip_address(listener.host)
    except ValueError:
        return listener
    if not address.is_unspecified:
        return listener
    loopback = "127.0.0.1" if address.version == 4 else "::1"
    return Listener(loopback, listener.port)


def _same_server(typed: Listener, own: Listener) -> bool:
    """Whether a typed address means our own server: the same address, or loopback and the same port."""
    reachable = _reachable(own)
    if typed.port != reachable.port:
        return False
    same_host = typed.host.lower() == reachable.host.lower()
    return same_host or (is_loopback(typed.host) and is_loopback(reachable.host))


def _parse_url(text: str, found_by: str) -> tuple[str, Listener]:
    form = "http://HOST:PORT or https://HOST[:PORT]"
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise refusal(found_by, text, form) from None
    extra = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or extra:
        raise refusal(found_by, text, form)
    return parts.scheme, Listener(parts.hostname, port or DEFAULT_PORTS[parts.scheme])
