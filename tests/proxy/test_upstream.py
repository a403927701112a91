"""Errors of the HTTP library as ours: every one has its kind (08 §5.3)."""

from __future__ import annotations

import inspect

import aiohttp
import pytest
from aiohttp import client_exceptions

from framework.proxy.upstream import failure_kind

KINDS = {
    "connect": {
        "ClientConnectorCertificateError",
        "ClientConnectorDNSError",
        "ClientConnectorError",
        "ClientConnectorSSLError",
        "ClientProxyConnectionError",
        "ClientSSLError",
        "UnixClientConnectorError",
    },
    "close": {"ServerDisconnectedError"},
    "protocol": {
        "ClientError",
        "ClientHttpProxyError",
        "ClientResponseError",
        "ContentTypeError",
        "InvalidURL",
        "InvalidUrlClientError",
        "InvalidUrlRedirectClientError",
        "NonHttpUrlClientError",
        "NonHttpUrlRedirectClientError",
        "RedirectClientError",
        "TooManyRedirects",
        "UploadAbortedError",
        "WSServerHandshakeError",
    },
    "read": {"ClientConnectionResetError", "ClientOSError", "ClientPayloadError"},
    "write": {"ClientConnectionError", "ServerConnectionError", "ServerFingerprintMismatch"},
}
TIMEOUTS = {"ConnectionTimeoutError", "ServerTimeoutError", "SocketTimeoutError"}
"""Never a kind: a time-out means load, not death."""


def library_errors() -> dict[str, type[aiohttp.ClientError]]:
    """All errors that the library may raise for a call."""
    found = inspect.getmembers(client_exceptions, inspect.isclass)
    return {name: kind for name, kind in found if issubclass(kind, aiohttp.ClientError)}


def test_every_error_of_the_library_is_placed() -> None:
    assert set().union(*KINDS.values()) | TIMEOUTS == set(library_errors())


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in KINDS.items() for name in sorted(names)]
)
def test_kinds_of_failures(kind: str, name: str) -> None:
    error_type = library_errors()[name]
    assert failure_kind(error_type.__new__(error_type)) == kind


def test_an_error_of_the_system_is_one_of_reading() -> None:
    assert failure_kind(ConnectionResetError()) == "read"
