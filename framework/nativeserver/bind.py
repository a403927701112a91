"""The socket that the server listens on, bound before anything slow begins (12 §1.3). Called by process."""

from __future__ import annotations

import errno
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from framework.nativeserver.options import ServerOptions

BACKLOG = 1024
UNIX_SUFFIX = ".sock"
FIRST_FREE_PORT = 1024
"""Lower ones are for the system's own services."""


class CannotBind(Exception):
    """The text has host, port and cause."""


@dataclass(frozen=True)
class Listening:
    """A listening socket, and the address that clients use."""

    socket: socket.socket
    url: str
    path: Path | None = None
    """Of a UNIX socket."""

    @classmethod
    def open(cls, options: ServerOptions) -> Listening:
        """Bind and listen. Raises CannotBind."""
        try:
            if options.host.endswith(UNIX_SUFFIX):
                return _open_unix(options.host)
            return _open_tcp(options)
        except OSError as error:
            raise CannotBind(
                f"couldn't bind HTTP server socket, hostname: {options.host}, port: {options.port}"
                f" ({error.strerror or error}){_remedy(error, options)}"
            ) from error

    def close(self) -> None:
        """Stop listening; a UNIX socket leaves its folder."""
        self.socket.close()
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink()


def tls_fault(options: ServerOptions) -> str:
    """Why certificate and key cannot be used; empty when they can, or when there are none."""
    if options.ssl_cert_file is None or options.ssl_key_file is None:
        return ""
    import ssl  # takes as long as the rest of a start before the load, and most servers need none of it

    try:
        # A password that nobody is asked for.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.ssl_cert_file, options.ssl_key_file, password="")
    except OSError as error:  # ssl.SSLError is one
        return (
            f"cannot use --ssl-cert-file '{options.ssl_cert_file}' with --ssl-key-file"
            f" '{options.ssl_key_file}': {error.strerror or error}; both are PEM, without a password"
        )
    return ""


def _remedy(error: OSError, options: ServerOptions) -> str:
    """What to do, with who is in the way as far as that can be seen."""
    is_unix = options.host.endswith(UNIX_SUFFIX)
    if is_unix:
        return (
            "; remove that file, or name another one with --host" if error.errno == errno.EADDRINUSE else ""
        )
    if error.errno == errno.EADDRINUSE:
        from framework.runtime.port_holder import port_holder

        holder = port_holder(options.port) or "another program"
        return f": {holder} has it; end that, or choose another port with --port"
    if error.errno == errno.EACCES:
        return f"; choose a port from {FIRST_FREE_PORT} on with --port"
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return "; name an address of this machine with --host, such as 127.0.0.1"
    return ""


def _open_tcp(options: ServerOptions) -> Listening:
    found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if options.reuse_port:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
        _listen(bound)
    except OSError:
        bound.close()
        raise
    host = f"[{options.host}]" if ":" in options.host else options.host
    scheme = "http" if options.ssl_cert_file is None else "https"
    return Listening(bound, f"{scheme}://{host}:{bound.getsockname()[1]}")


def _open_unix(name: str) -> Listening:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(name)
        _listen(bound)
    except OSError:
        bound.close()
        raise
    return Listening(bound, f"unix://{name}", Path(name))


def _listen(bound: socket.socket) -> None:
    bound.listen(BACKLOG)
    bound.setblocking(False)
