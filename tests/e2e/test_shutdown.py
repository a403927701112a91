"""Ending `paddock up` while clients hold connections of every kind: soon, and without a trace in the log."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import engine_table, model_table
from tests.support.paddock import RunningPaddock

# A page may take a quarter of a second to look up, a stalled client is cut after one; the rest is room.
END_S = 20.0
BEGIN_S = 20.0


def get(path: str, *headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
    return "\r\n".join(lines).encode()


def page_stream(paddock: RunningPaddock) -> bytes:
    with socket.create_connection(("127.0.0.1", paddock.port), BEGIN_S) as visit:
        visit.sendall(get("/", "Connection: close"))
        page = b"".join(iter(lambda: visit.recv(2**16), b""))
    cookie = next(line for line in page.decode().split("\r\n") if line.startswith("set-cookie: "))
    return get("/live?page=overview", f"Cookie: {cookie.removeprefix('set-cookie: ').partition(';')[0]}")


def event_stream(paddock: RunningPaddock) -> bytes:
    return get("/api/v1/events/stream", f"Authorization: Bearer {paddock.token}")


def log_stream(paddock: RunningPaddock) -> bytes:
    return get("/api/v1/models/tiny/logs?follow=1", f"Authorization: Bearer {paddock.token}")


def half_a_head(_: RunningPaddock) -> bytes:
    return b"GET / HT"


def half_a_chat(_: RunningPaddock) -> bytes:
    return b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"


def half_a_form(_: RunningPaddock) -> bytes:
    return b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nkey="


STREAMS = (page_stream, event_stream, log_stream)


@pytest.mark.parametrize("said", [*STREAMS, half_a_head, half_a_chat, half_a_form])
def test_an_open_connection_does_not_hold_the_end_up(
    paddock_up: StartPaddock,
    fake_engine: MakeFake,
    tiny_gguf: Path,
    said: Callable[[RunningPaddock], bytes],
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("tiny", tiny_gguf))
    paddock.wait_state("tiny", "ready")
    with socket.create_connection(("127.0.0.1", paddock.port), BEGIN_S) as client:
        client.sendall(said(paddock))
        if said in STREAMS:
            assert client.recv(12) == b"HTTP/1.1 200"
        else:
            time.sleep(0.2)
        began = time.monotonic()
        assert paddock.stop() == 0
    assert time.monotonic() - began < END_S
    for word in ("Traceback", "Cancel", "ERROR"):
        assert word not in paddock.log_text()
