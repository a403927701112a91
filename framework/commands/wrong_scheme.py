"""Why a connection to a server that is there comes to nothing: HTTP where it speaks HTTPS, or the other way
round, or a certificate that nobody vouches for. Used by commands.client.
"""

from __future__ import annotations

import socket
import ssl

from framework.commands.failure import UNREACHABLE, CommandFailed
from framework.commands.target import Target

PROBE_TIMEOUT_S = 2.0
# What OpenSSL calls an answer that is no TLS; which of them depends on its version and on the answer.
NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"})


def tls_failure(target: Target, error: ssl.SSLError) -> CommandFailed | None:
    """What a failed handshake means; None where it says nothing of the kind."""
    if isinstance(error, ssl.SSLCertVerificationError):
        told = f"The server at {target.url} is not trusted: {error.verify_message.rstrip('.')}."
        if target.certificate is not None:
            return CommandFailed(
                UNREACHABLE,
                told,
                "`paddock up` of this manifest left word of another certificate: look at what listens there.",
            )
        return CommandFailed(
            UNREACHABLE,
            told,
            "Use a name that stands in its certificate, set SSL_CERT_FILE to a file with that certificate or "
            "its issuer's, or on the same machine name its manifest with --manifest in place of --url.",
        )
    if error.reason in NO_TLS:
        return CommandFailed(
            UNREACHABLE,
            f"The server at {target.url} ({target.found_by}) does not speak HTTPS.",
            f"Name it as http://{target.listener}.",
        )
    return None


def https_failure(target: Target) -> CommandFailed | None:
    """For a server that left a plain request without an answer: what to do if it speaks HTTPS.

    Nothing secret is sent: the handshake is broken off when the server has shown a certificate.
    """
    address = (target.listener.host, target.listener.port)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection(address, timeout=PROBE_TIMEOUT_S) as plain, context.wrap_socket(plain):
            pass
    except OSError:
        return None
    return CommandFailed(
        UNREACHABLE,
        f"The server at {target.url} ({target.found_by}) speaks HTTPS.",
        f"Name it as https://{target.listener}.",
    )
