"""The certificate that the listener shows, and its replacement while it serves (01 §1 `server.tls`).

Called by app. A new pair of files is read and tried with the manifest, in the thread that reads it; the
event loop only changes which one the next handshake gets. Connections that are open keep what they began
with.
"""

from __future__ import annotations

import ssl
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from framework.certificate_dates import certificate_reason, ends_at
from framework.manifest.document import parse_document
from framework.manifest.findings import Findings, Place
from framework.manifest.load import Loaded
from framework.telemetry.events import utc_now
from framework.values.manifest import Manifest, Tls
from framework.values.problem import Problem

OTHERS_MAY_READ = 0o007


class TlsFault(Exception):
    """A certificate and a key that cannot be used; the text says why and what to do."""


def make_context(tls: Tls) -> ssl.SSLContext:
    """A server's context with this certificate: TLS 1.2 and up. Reads both files. Raises TlsFault."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2

    def no_password() -> str:
        raise TlsFault(
            f"the private key {tls.key} is locked with a password, and nobody is there to type it when the "
            "server starts: store it without, readable for you alone"
        )

    try:
        context.load_cert_chain(tls.certificate, tls.key, no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TlsFault(
                f"the private key {tls.key} does not belong to {tls.certificate}: name a key and a "
                "certificate that were made together"
            ) from error
        raise TlsFault(
            f"{tls.certificate} and {tls.key} are no certificate and private key in PEM form; "
            "name the file of the whole chain, such as fullchain.pem, and that of the key, privkey.pem"
        ) from error
    except OSError as error:
        raise TlsFault(
            f"{tls.certificate} or {tls.key} cannot be read: {error.strerror}; both have to be "
            "readable for the user who runs `paddock up`"
        ) from error
    return context


class Certificate:
    """What handshakes of one listener get. `check` is called by threads, everything else by the event
    loop."""

    def __init__(self, tls: Tls | None) -> None:
        """Raises TlsFault."""
        self.tls = tls
        self.context: ssl.SSLContext | None = None
        """The context to listen with; None for plain HTTP."""
        self.ends_at: datetime | None = None
        """When what is shown ends; None where there is nothing, or that cannot be read."""
        self._tried: tuple[Tls, ssl.SSLContext, datetime | None] | None = None
        if tls is not None:
            self._shown = make_context(tls)
            self.ends_at = _end(tls)
            self.context = make_context(tls)
            self.context.sni_callback = self._choose

    @property
    def scheme(self) -> str:
        """Of addresses of this listener."""
        return "http" if self.context is None else "https"

    def check(self, loaded: Loaded) -> Loaded:
        """Refuse a manifest whose files cannot be shown; warn of a key that everybody may read, and of a
        certificate that ends."""
        manifest = loaded.manifest
        tls = manifest.server.tls if manifest is not None else None
        if manifest is None or tls is None:
            return loaded
        try:
            self._tried = (tls, make_context(tls), end := _end(tls))
        except TlsFault as fault:
            problem = _problem(loaded, "tls_unusable", f"server.tls: {fault}")
            return replace(loaded, manifest=None, problems=(problem, *loaded.problems))
        if not _is_private(tls.key):
            text = f"server.tls.key: every user of this machine may read {tls.key}; run `chmod 600 {tls.key}`"
            problem = replace(_problem(loaded, "tls_key_readable", text), severity="warning")
            loaded = replace(loaded, problems=(*loaded.problems, problem))
        if (reason := certificate_reason(tls.certificate, end, utc_now())) is not None:
            text = f"server.tls.certificate: {reason.message} {reason.remedy}"
            problem = replace(_problem(loaded, reason.code, text), severity="warning")
            loaded = replace(loaded, problems=(*loaded.problems, problem))
        return loaded

    def adopt(self, manifest: Manifest) -> None:
        """Show the certificate of a manifest that `check` has passed from now on."""
        tls, tried = manifest.server.tls, self._tried
        if self.context is not None and tried is not None and tried[0] == tls:
            self.tls, self._shown, self.ends_at = tried

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._shown


def _end(tls: Tls) -> datetime | None:
    try:
        return ends_at(tls.certificate.read_text("ascii", "replace"))
    except OSError:
        return None


def _is_private(key: Path) -> bool:
    try:
        return not key.stat().st_mode & OTHERS_MAY_READ
    except OSError:
        return True


def _problem(loaded: Loaded, code: str, message: str) -> Problem:
    """At the place where the pair is named; it has been read, so some file names it."""
    for label, raw in loaded.sources.items():
        document = parse_document(Path(label), label, raw, Findings())
        server = document.data.get("server")
        if isinstance(server, dict) and "tls" in server:
            line, column = Place(document, ("server", "tls")).key.line_column
            return Problem(code, label, line, column, "server.tls", message)
    file = str(loaded.manifest.path) if loaded.manifest is not None else ""
    return Problem(code, file, 1, 1, "server.tls", message)
