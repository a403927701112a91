"""Splitting a stream of bytes into events (08 §6.1-6.3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.proxy.errors import ProxyError
from framework.proxy.sse import SseReader

LIMIT = 64


def read(*chunks: bytes, limit: int = LIMIT) -> list[bytes]:
    """All payloads of a stream that arrives in these chunks."""
    reader = SseReader(limit)
    return [payload for chunk in chunks for payload in reader.feed(chunk)] + reader.finish()


@pytest.mark.parametrize(
    ("stream", "payloads"),
    [
        pytest.param(b"data: a\n\ndata: b\n\n", [b"a", b"b"], id="two-events"),
        pytest.param(b"data:a\n\n", [b"a"], id="no-space"),
        pytest.param(b"data:  a\n\n", [b" a"], id="only-one-space-is-dropped"),
        pytest.param(b"data: a\r\n\r\n", [b"a"], id="crlf"),
        pytest.param(b"data: a\ndata: b\n\n", [b"a\nb"], id="lines-of-one-event-are-joined"),
        pytest.param(b": ping\n\n:\n\ndata: a\n\n", [b"a"], id="comments"),
        pytest.param(b"event: x\nid: 1\nretry: 5\ndata: a\n\n", [b"a"], id="other-fields"),
        pytest.param(b"data: a", [b"a"], id="end-without-line-end"),
        pytest.param(b"data: a\n", [b"a"], id="end-without-blank-line"),
        pytest.param(b"\n\n\n", [], id="blank-lines"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_payloads_of_a_stream(stream: bytes, payloads: list[bytes]) -> None:
    assert read(stream) == payloads


@given(st.lists(st.text("aä€😀\r ", max_size=8), max_size=6), st.data())
def test_cutting_a_stream_anywhere_changes_nothing(texts: list[str], data: st.DataObject) -> None:
    stream = b"".join(b"data: " + text.encode() + b"\n\n" for text in texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read(*chunks) == read(stream)


PARTS = [b"data: a", b"data:", b"data: ", b"x", b": ping", b"event: y", b"\n", b"\n\n", b"\r\n", b"\r"]


@given(st.lists(st.lists(st.sampled_from(PARTS), max_size=5).map(b"".join), max_size=5))
def test_whole_events_are_what_their_lines_are(chunks: list[bytes]) -> None:
    bytes_of_stream = [bytes([number]) for number in b"".join(chunks)]
    assert read(*chunks) == read(*bytes_of_stream)


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_any_bytes_are_read_or_refused(chunks: list[bytes]) -> None:
    try:
        payloads = read(*chunks)
    except ProxyError as error:
        assert error.code == "upstream_protocol_error"
    else:
        assert all(len(payload) <= LIMIT for payload in payloads)


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([b"x" * (LIMIT + 1)], id="line-in-one-chunk"),
        pytest.param([b"x" * LIMIT, b"x"], id="line-in-chunks"),
        pytest.param([b"data: " + b"x" * LIMIT + b"\n\n"], id="data-line"),
        pytest.param([b"data: " + b"x" * 30 + b"\n"] * 3, id="event-of-many-lines"),
        pytest.param([b"data:\n"] * (LIMIT + 2), id="event-of-empty-lines"),
    ],
)
def test_what_is_too_long_is_refused(chunks: list[bytes]) -> None:
    with pytest.raises(ProxyError) as caught:
        read(*chunks)
    assert caught.value.code == "upstream_protocol_error"


def test_an_event_as_long_as_the_limit_is_read() -> None:
    line = b"data:" + b"x" * (LIMIT - 5)
    assert read(line + b"\n\n") == [b"x" * (LIMIT - 5)]
