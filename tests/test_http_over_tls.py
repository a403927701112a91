"""The listener over TLS on real sockets: clients that never shake hands, and that say something else."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framework.http_limits import HttpLimits
from framework.tls import make_context
from framework.values.manifest import Tls
from tests.support.wire import WireServer, wire_server
from tests.test_http_connection import GET, Echo, loud

DATA = Path(__file__).parent / "data" / "tls"
LIMITS = HttpLimits(head_timeout_s=0.5)
BEGUN = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
TIMEOUT_S = 30.0


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    context = make_context(Tls(DATA / "one.crt", DATA / "one.key", "1"))
    with wire_server(Echo(), LIMITS, context) as running:
        yield running


@pytest.fixture
def patient() -> Iterator[WireServer]:
    """Waits longer for a handshake than a test lasts, and for few at once."""
    context = make_context(Tls(DATA / "one.crt", DATA / "one.key", "1"))
    with wire_server(
        Echo(), HttpLimits(head_timeout_s=600.0, handshakes=4, connections=8), context
    ) as running:
        yield running


def secure(server: WireServer, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLSocket:
    """A client that has shaken hands."""
    context = ssl.create_default_context(cafile=str(DATA / "one.crt"))
    context.maximum_version = version
    raw = socket.create_connection((server.address.host, server.address.port), TIMEOUT_S)
    return context.wrap_socket(raw, server_hostname="localhost")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_a_connection_serves_several_requests(server: WireServer, version: ssl.TLSVersion) -> None:
    with secure(server, version) as client:
        for _ in range(3):
            client.sendall(GET + b"\r\n")
            answer = b""
            while not answer.endswith(b"localhost "):
                answer += client.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("said", [b"", BEGUN], ids=["silent", "begun"])
def test_a_handshake_that_does_not_end_is_cut(server: WireServer, said: bytes) -> None:
    assert server.connect(said).status() == 0


def test_what_is_no_tls_is_cut_without_a_line_in_the_log(server: WireServer, caplog: Any) -> None:
    assert b"HTTP/1.1" not in server.connect(GET + b"\r\n").answer()
    assert loud(caplog) == []


def test_a_head_over_tls_has_to_come_in_time_as_well(server: WireServer) -> None:
    with secure(server) as client:
        client.sendall(GET)
        assert client.recv(65536) == b""


def test_handshakes_that_stall_keep_nobody_out(patient: WireServer) -> None:
    stalled = [patient.connect(BEGUN) for _ in range(6)]
    assert [wire.status() for wire in stalled[:2]] == [0, 0]
    with secure(patient) as client:
        client.sendall(GET + b"\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
    assert stalled[2].status() == 0
    for wire in stalled[3:]:
        wire.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            wire.socket.recv(1)


def test_too_many_connections_are_told_so_once_they_are_safe(patient: WireServer) -> None:
    served = [secure(patient) for _ in range(8)]
    with secure(patient) as client:
        assert client.recv(65536).startswith(b"HTTP/1.1 503")
    for client in served:
        client.close()
