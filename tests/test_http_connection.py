"""What a client may do to the listener before anybody knows who it is, on real sockets."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from framework.http_limits import HttpLimits, capped
from tests.support.waiting import wait_until
from tests.support.wire import WireServer, wire_server

HEAD_BYTES = 4096
HEAD_TIMEOUT_S = 0.4
CONNECTIONS = 20
LIMITS = HttpLimits(
    head_bytes=HEAD_BYTES, head_timeout_s=HEAD_TIMEOUT_S, connections=CONNECTIONS, pipelined=4, linger_s=0.3
)
# Far beyond what the server reads in one go, as a client sends that never ends.
FLOOD_BYTES = 20 * 2**20
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
EMPTY_LINE = b"\r\n"
CLOSE = b"Connection: close\r\n\r\n"


class Echo:
    """Answers with Host and body, but for these paths.

    `/early` does not read, `/slow` waits for `go`, `/blind` does both, `/gone` waits for the client to leave.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.served: list[str] = []
        self.left = 0
        self.go = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.served.append(scope["path"])
        host = dict(scope["headers"]).get(b"host", b"")
        body = b"" if scope["path"] in ("/early", "/blind") else await self._body(receive)
        if scope["path"] == "/gone":
            while (await receive())["type"] != "http.disconnect":
                continue
        while scope["path"] in ("/slow", "/blind") and not self.go:
            await asyncio.sleep(0.01)
        text = host + b" " + body
        length = [(b"content-length", str(len(text)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body", "body": text})

    async def _body(self, receive: Receive) -> bytes:
        body = b""
        while True:
            message: Message = await receive()
            if message["type"] == "http.disconnect":
                self.left += 1
                return body
            body += message["body"]
            if not message.get("more_body", False):
                return body


def loud(caplog: Any) -> list[str]:
    """What was logged as a warning or worse."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Echo, WireServer]]:
    echo = Echo()
    with wire_server(echo, LIMITS) as server:
        yield echo, server


@pytest.fixture
def echo(running: tuple[Echo, WireServer]) -> Echo:
    running[0].forget()
    return running[0]


@pytest.fixture
def server(running: tuple[Echo, WireServer], echo: Echo) -> Iterator[WireServer]:
    yield running[1]
    echo.go = True
    running[1].close()
    wait_until(lambda: running[1].open_connections == 0, what="the connections to end")


@pytest.mark.parametrize(
    ("begin", "more", "status"),
    [
        pytest.param(GET, b"X-Header: value\r\n", 431, id="endless-headers"),
        pytest.param(GET, b"a:\r\n", 431, id="endless-tiny-headers"),
        pytest.param(GET + b"Cookie: ", b"a" * 1000, 431, id="endless-value"),
        pytest.param(GET, b"N" * 1000, 431, id="endless-name"),
        pytest.param(b"GET /", b"a" * 1000, 414, id="endless-path"),
        pytest.param(b"GET /?q=", b"a" * 1000, 414, id="endless-query"),
        pytest.param(b"", b"\r\n", 431, id="endless-lines-before"),
    ],
)
def test_what_has_no_end_is_refused(
    server: WireServer, echo: Echo, begin: bytes, more: bytes, status: int
) -> None:
    wire = server.connect(begin)
    wire.send(more * (FLOOD_BYTES // len(more)))
    assert wire.status() == status
    assert echo.served == []


def test_a_refused_client_may_go_on_for_a_moment(server: WireServer) -> None:
    wire = server.connect(GET + b"X: " + b"a" * HEAD_BYTES * 2)
    answer = wire.until(b"\n")
    for _ in range(3):
        # Raises where the connection was reset, and then some systems lose the answer.
        wire.socket.sendall(b"a" * 1000)
        time.sleep(0.02)
    assert answer.startswith(b"HTTP/1.1 431 ")


def test_trailers_without_end_are_refused(server: WireServer, echo: Echo) -> None:
    wire = server.connect(POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n")
    wire.send(b"X-Trailer: value\r\n" * (FLOOD_BYTES // 18))
    assert wire.status() == 431
    wait_until(lambda: echo.left == 1, what="the reader of the body to be told")


@pytest.mark.parametrize("excess", [-1, 0, 1])
def test_the_limit_counts_address_and_headers_together(server: WireServer, excess: int) -> None:
    value = b"a" * (HEAD_BYTES - len("/") - len("host: localhost\r\n") - len("x: \r\n") + excess)
    wire = server.connect(b"GET / HTTP/1.0\r\nHost: localhost\r\nX: " + value + b"\r\n\r\n")
    assert wire.status() == (431 if excess > 0 else 200)


def test_a_body_is_no_head(server: WireServer) -> None:
    body = b"x" * (HEAD_BYTES * 50)
    wire = server.connect(POST + b"Content-Length: %d\r\n" % len(body) + CLOSE + body)
    assert wire.answer().endswith(b"localhost " + body)


@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GE", id="half-a-line"),
        pytest.param(GET, id="headers-without-end"),
        pytest.param(b"\r\n", id="an-empty-line"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", id="the-second-request"),
    ],
)
def test_a_head_that_does_not_arrive_ends_the_connection(server: WireServer, begun: bytes) -> None:
    started = time.monotonic()
    wire = server.connect(begun)
    if begun.endswith(b"GET"):
        wire.until(b" ")
        time.sleep(0.05)
        wire.send(b" ")
    wire.answer()
    assert HEAD_TIMEOUT_S / 2 < time.monotonic() - started < HEAD_TIMEOUT_S + 30


def test_a_head_in_drops_is_no_longer_in_time(server: WireServer) -> None:
    wire = server.connect(GET)
    wire.socket.settimeout(0.05)
    deadline = time.monotonic() + HEAD_TIMEOUT_S + 30
    while time.monotonic() < deadline:
        wire.send(b"a: b\r\n")
        try:
            if wire.answer() == b"":
                return
        except TimeoutError:
            continue
    raise AssertionError("still open")


def test_the_rest_of_a_body_that_nobody_reads_has_to_come_in_time(server: WireServer) -> None:
    wire = server.connect(b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n")
    wire.until(b"a ")
    wire.send(b"x")
    started = time.monotonic()
    wire.answer()
    assert time.monotonic() - started < HEAD_TIMEOUT_S + 30


def test_between_requests_a_connection_may_rest(server: WireServer) -> None:
    wire = server.connect(GET + EMPTY_LINE)
    wire.until(b"localhost ")
    time.sleep(HEAD_TIMEOUT_S * 1.5)
    wire.send(GET + CLOSE)
    assert wire.status() == 200


def test_a_long_answer_is_not_cut_by_the_time_for_heads(server: WireServer, echo: Echo) -> None:
    wire = server.connect(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /next HT")
    time.sleep(HEAD_TIMEOUT_S * 1.5)
    echo.go = True
    assert b" 200 OK" in wire.until(b"a ")


def test_connections_beyond_the_limit_are_told_so(server: WireServer) -> None:
    for _ in range(CONNECTIONS):
        server.connect(GET)
    wait_until(lambda: server.open_connections == CONNECTIONS)
    answer = server.connect().answer()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after" in answer


def test_a_closed_connection_makes_room(server: WireServer) -> None:
    wires = [server.connect() for _ in range(CONNECTIONS)]
    wait_until(lambda: server.open_connections == CONNECTIONS)
    wires[0].close()
    wait_until(lambda: server.open_connections < CONNECTIONS)
    assert server.connect(GET + CLOSE).status() == 200


@pytest.mark.parametrize(("open_files", "connections"), [(1024, 512), (20, 10), (1, 1), (10**6, 4096)])
def test_open_files_bound_the_connections(open_files: int, connections: int) -> None:
    assert capped(HttpLimits(), open_files).connections == connections


def test_requests_that_wait_behind_others_are_few(server: WireServer, echo: Echo) -> None:
    wire = server.connect(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n" + (GET + EMPTY_LINE) * 1000)
    wait_until(lambda: echo.served == ["/slow"])
    echo.go = True
    assert wire.answer().count(b"HTTP/1.1 200 OK") == 1 + LIMITS.pipelined


@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n", 400, id="two-hosts"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: a\r\nHOST: b\r\n", 400, id="two-names"),
        pytest.param(b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n", 400, id="two-in-1.0"),
        pytest.param(b"GET / HTTP/1.1\r\n", 400, id="none"),
        pytest.param(b"GET / HTTP/1.0\r\n", 200, id="none-in-1.0"),
        pytest.param(b"GET / HTTP/1.1\r\nHost:\r\n", 200, id="empty"),
        pytest.param(b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n", 400, id="other-scheme"),
        pytest.param(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n", 400, id="asterisk"),
        pytest.param(b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n", 405, id="tunnel"),
        pytest.param(b"GET\x00/ HTTP/1.1\r\nHost: a\r\n", 400, id="no-http"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, id="tls"),
    ],
)
def test_the_first_lines_of_a_request(server: WireServer, head: bytes, status: int) -> None:
    assert server.connect(head + CLOSE).status() == status


@pytest.mark.parametrize(
    ("target", "host"),
    [
        pytest.param(b"http://evil.example/v1", b"evil.example", id="path"),
        pytest.param(b"http://evil.example:81", b"evil.example:81", id="no-path"),
        pytest.param(b"HTTP://evil.example?a=/b", b"evil.example", id="query"),
        pytest.param(b"http://localhost@evil.example/", b"localhost@evil.example", id="user"),
        pytest.param(b"/v1", b"localhost", id="origin-form"),
    ],
)
def test_the_host_of_the_target_counts(server: WireServer, target: bytes, host: bytes) -> None:
    wire = server.connect(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n" + CLOSE)
    assert wire.answer().endswith(b"\r\n\r\n" + host + b" ")


UPGRADE = b"Connection: Upgrade, close\r\nUpgrade: websocket\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(POST + UPGRADE + b"Content-Length: 2\r\n\r\nhi", id="length"),
        pytest.param(
            POST + UPGRADE + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", id="chunked"
        ),
    ],
)
@pytest.mark.parametrize("piece", [1, 1000])
def test_the_body_behind_an_offer_to_upgrade_belongs_to_the_request(
    server: WireServer, echo: Echo, request_bytes: bytes, piece: int
) -> None:
    wire = server.connect()
    for start in range(0, len(request_bytes), piece):
        wire.send(request_bytes[start : start + piece])
    assert wire.answer().endswith(b"localhost hi")
    assert len(echo.served) == 1


def test_what_a_client_does_wrong_is_not_logged(server: WireServer, caplog: Any) -> None:
    caplog.set_level(logging.INFO)
    wrong = [
        GET + UPGRADE + EMPTY_LINE,
        b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"nonsense\r\n\r\n",
        GET + b"X: " + b"a" * HEAD_BYTES * 2,
        b"GET / HTTP/1.1\r\n\r\n",
    ]
    for data in wrong:
        server.connect(data).answer()
    for _ in range(CONNECTIONS + 5):
        server.connect()
    assert loud(caplog) == []


def test_a_broken_body_ends_its_request(server: WireServer, echo: Echo) -> None:
    wire = server.connect(POST + b"Transfer-Encoding: chunked\r\n\r\nno length\r\n")
    assert wire.status() == 400
    wait_until(lambda: echo.left == 1, what="the reader of the body to be told")


def test_a_request_whose_body_is_broken_has_one_answer(server: WireServer, echo: Echo, caplog: Any) -> None:
    wire = server.connect(b"POST /blind HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    wait_until(lambda: echo.served == ["/blind"])
    wire.send(b"no length\r\n")
    assert wire.until(b"\n").startswith(b"HTTP/1.1 400 ")
    echo.go = True
    assert b" 200 OK" not in wire.answer()
    wait_until(lambda: server.open_connections == 0, what="the end of the connection")
    assert loud(caplog) == []


def test_nonsense_behind_a_request_does_not_spoil_its_answer(server: WireServer, echo: Echo) -> None:
    wire = server.connect(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n" + b"nonsense\r\n\r\n")
    wait_until(lambda: echo.served == ["/slow"])
    echo.go = True
    answer = wire.answer()
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(b"GET /gone HTTP/1.1\r\nHost: a\r\n\r\n", id="an-answer-without-end"),
        pytest.param(POST + b"Content-Length: 100\r\n\r\nhalf", id="half-a-body"),
    ],
)
def test_a_server_that_ends_cuts_what_does_not_end_without_a_trace(begun: bytes, caplog: Any) -> None:
    echo = Echo()
    with wire_server(echo, LIMITS) as server:
        server.connect(begun)
        wait_until(lambda: echo.served)
    assert loud(caplog) == []
