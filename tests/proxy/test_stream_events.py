"""What kind of event one is, and what is known after it (08 §1.1, §6)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.proxy.stream_events import StreamState, read_event
from tests.proxy.scripted_engine import TIMINGS, USAGE, chunk, closing, finish, piece, role

PROGRESS = {"total": 9, "cache": 0, "processed": 3, "time_ms": 5}


def observed(*payloads: dict[str, Any] | bytes) -> StreamState:
    """The state after these events."""
    state = StreamState()
    for payload in payloads:
        event = read_event(payload if isinstance(payload, bytes) else json.dumps(payload).encode())
        assert event is not None
        state.observe(event)
    return state


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        pytest.param(piece("a"), "model", id="content"),
        pytest.param(finish(), "model", id="finish"),
        pytest.param(closing(), "model", id="usage"),
        pytest.param(chunk(choices=[{"index": 0, "delta": {}}]), "model", id="empty-delta"),
        pytest.param(chunk(choices=[{"index": 0, "delta": None}]), "model", id="null-delta"),
        pytest.param(chunk(), "model", id="no-choices"),
        pytest.param(role(), "progress", id="role-only"),
        pytest.param(
            chunk(choices=[{"index": 0, "delta": {"role": "assistant", "content": ""}}]),
            "progress",
            id="role-with-empty-content",
        ),
        pytest.param(
            chunk(choices=[{"index": 0, "delta": {"role": "assistant", "content": "a"}}]),
            "model",
            id="role-with-content",
        ),
        pytest.param(chunk(choices=[], prompt_progress=PROGRESS), "progress", id="prompt-progress"),
        pytest.param({"type": "diffusion_frame", "x": 1}, "frame", id="diffusion-frame"),
        pytest.param({"error": {"message": "no"}}, "error", id="error"),
        pytest.param({**piece("a"), "error": None}, "model", id="null-error"),
    ],
)
def test_kinds_of_events(payload: dict[str, Any], kind: str) -> None:
    event = read_event(json.dumps(payload).encode())
    assert event is not None
    assert event.kind == kind


@pytest.mark.parametrize("payload", [b"[DONE]", b" [DONE] "], ids=["plain", "blanks"])
def test_the_end_mark_ends_the_stream(payload: bytes) -> None:
    assert observed(payload).done


@pytest.mark.parametrize("payload", [b"{", b"5", b"[]", b'"x"', b"null", b""])
def test_what_is_no_object_is_skipped(payload: bytes) -> None:
    assert read_event(payload) is None


def test_invalid_text_becomes_replacement_characters() -> None:
    event = read_event(b'{"choices":[{"index":0,"delta":{"content":"\xc3"}}]}')
    assert event is not None
    assert event.data["choices"][0]["delta"]["content"] == "\ufffd"
    assert event.payload.decode() == '{"choices":[{"index":0,"delta":{"content":"\ufffd"}}]}'


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s, max_size=3)))
def test_foreign_values_in_choices_are_legal(value: object) -> None:
    for payload in ({"choices": value}, {"choices": [{"delta": value, "index": value}]}, {"usage": value}):
        event = read_event(json.dumps(payload).encode())
        assert event is not None
        StreamState().observe(event)


def test_a_role_does_not_open_a_stream() -> None:
    assert not observed(role()).opened


def test_a_piece_opens_a_stream() -> None:
    assert observed(role(), piece("a")).opened


def test_the_newest_numbers_are_kept() -> None:
    state = observed(piece("a"), closing(), chunk(choices=[], usage={}, timings={}))
    assert (state.usage, state.timings) == (USAGE, TIMINGS)


def test_counts_of_several_choices_are_added() -> None:
    state = observed(finish(index=1), closing(), finish(index=0), closing())
    assert state.usage == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def test_counts_that_grow_with_every_chunk_are_not_added() -> None:
    state = observed(piece("a"), closing(), closing(), finish())
    assert state.usage == USAGE


@pytest.mark.parametrize(
    ("payloads", "complete"),
    [
        pytest.param([piece("a")], False, id="open"),
        pytest.param([piece("a"), finish()], True, id="finished"),
        pytest.param([piece("a", 0), piece("b", 1), finish(index=0)], False, id="one-of-two"),
        pytest.param([piece("a", 0), piece("b", 1), finish(index=0), finish(index=1)], True, id="both"),
        pytest.param([piece("a"), b"[DONE]"], True, id="marked"),
        pytest.param([], False, id="nothing"),
    ],
)
def test_when_the_end_of_a_body_is_the_end_of_the_answer(payloads: list[Any], complete: bool) -> None:
    assert observed(*payloads).complete is complete


def test_pieces_are_counted() -> None:
    assert observed(role(), piece("a"), piece("b"), finish(), closing()).pieces == 2
