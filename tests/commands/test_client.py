"""The client of the API against servers that are no Paddock, hang, or vanish."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from framework.commands.client import ApiClient, model_path
from framework.commands.failure import CommandFailed
from framework.commands.target import Target
from framework.values.manifest import Listener

TLS = Path(__file__).parents[1] / "data" / "tls"


@contextmanager
def answering(reply: bytes) -> Iterator[Target]:
    """A listener that answers one connection with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield Target("http", Listener("127.0.0.1", listener.getsockname()[1]), "t", "--url", Path("state"))
        thread.join()


def http(status: str, body: bytes, kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", id="another-protocol"),
        pytest.param(http("200 OK", b"<html>", "text/html"), id="page"),
        pytest.param(http("200 OK", b'{"a":'), id="cut-json"),
        pytest.param(http("404 Not Found", b"<html>", "text/html"), id="error-page"),
        pytest.param(http("404 Not Found", b'{"detail": "no"}'), id="other-error-shape"),
        pytest.param(http("302 Found", b""), id="redirect"),
        pytest.param(http("200 OK", b"x" * 10)[:-5], id="cut-body"),
    ],
)
def test_server_that_is_no_paddock_counts_as_unreachable(reply: bytes) -> None:
    with answering(reply) as target, pytest.raises(CommandFailed) as caught:
        ApiClient(target).get("/status")
    assert caught.value.code == 3
    assert str(target.listener) in caught.value.message


def test_server_that_never_answers_counts_as_unreachable(free_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = Target(
            "http", Listener("127.0.0.1", listener.getsockname()[1]), None, "--url", Path("state")
        )
        with pytest.raises(CommandFailed, match="no answer in time"):
            ApiClient(target, answer_timeout_s=0.1).get("/status")


@contextmanager
def serving_https() -> Iterator[Listener]:
    """A server of HTTPS that takes one handshake after another."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "one.crt", TLS / "one.key")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                connection, _ = listener.accept()
                with connection:
                    if connection.recv(1, socket.MSG_PEEK) == b"":
                        return
                    with suppress(OSError), context.wrap_socket(connection, server_side=True):
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        address = ("127.0.0.1", listener.getsockname()[1])
        yield Listener(*address)
        socket.create_connection(address).close()
        thread.join()


def test_a_certificate_that_is_not_trusted_is_not_called_a_server_that_does_not_run() -> None:
    with serving_https() as listener, pytest.raises(CommandFailed) as caught:
        ApiClient(Target("https", listener, None, "--url", Path("state"))).get("/status")
    assert caught.value.code == 3
    assert "is not trusted" in caught.value.message
    assert "SSL_CERT_FILE" in caught.value.remedy
    assert "--manifest" in caught.value.remedy


def test_a_server_of_https_that_is_asked_in_http_is_told_as_that() -> None:
    with serving_https() as listener, pytest.raises(CommandFailed) as caught:
        ApiClient(Target("http", listener, None, "--url", Path("state"))).get("/status")
    assert caught.value.remedy == f"Name it as https://{listener}."


def test_a_server_of_http_that_is_asked_in_https_is_told_as_that() -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as target, pytest.raises(CommandFailed) as caught:
        ApiClient(replace(target, scheme="https")).get("/status")
    assert caught.value.remedy == f"Name it as http://{target.listener}."


def test_key_that_cannot_be_a_header_is_bad_usage() -> None:
    target = Target("http", Listener("127.0.0.1", 1), "a\nb", "--url", Path("state"))
    with pytest.raises(CommandFailed) as caught:
        ApiClient(target).get("/status")
    assert caught.value.code in (2, 3)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        pytest.param("400 Bad Request", 2, id="bad-question"),
        pytest.param("404 Not Found", 2, id="unknown"),
        pytest.param("401 Unauthorized", 3, id="not-known"),
        pytest.param("403 Forbidden", 1, id="not-allowed"),
        pytest.param("500 Internal Server Error", 1, id="fault"),
        pytest.param("503 Service Unavailable", 1, id="busy"),
    ],
)
def test_refusal_has_its_exit_code(status: str, code: int) -> None:
    with (
        answering(http(status, b'{"error": {"message": "No."}}')) as target,
        pytest.raises(CommandFailed) as caught,
    ):
        ApiClient(target).get("/status")
    assert caught.value.code == code


def test_stream_gives_the_data_of_each_event() -> None:
    body = b": keep-alive\n\nid: 1\ndata: one\n\ndata: two\ndata: lines\n\ndata: cut"
    with answering(http("200 OK", body, "text/event-stream")) as target:
        stream = ApiClient(target).stream("/events/stream")
        assert [next(stream), next(stream)] == ["one", "two\nlines"]
        with pytest.raises(CommandFailed, match="ended the stream"):
            next(stream)


def test_name_is_encoded_as_one_part_of_the_path() -> None:
    assert model_path("org/a:b ?#%", "load") == "/models/org%2Fa%3Ab%20%3F%23%25/load"
