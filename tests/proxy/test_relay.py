"""What the client of a stream gets of the instance's chunks (08 §7, §12.4, cases PX-08)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.proxy.errors import ProxyError
from framework.proxy.relay import Flavour, Relay
from framework.proxy.sse import SseReader
from framework.proxy.stream_events import StreamState, read_event
from tests.proxy.scripted_engine import CHUNK, TIMINGS, USAGE, chunk, closing, finish, piece, role

PROGRESS = {"total": 9, "cache": 0, "processed": 3, "time_ms": 5}
FAILURE = ProxyError("stream_stalled", "It stopped.")


class Stream:
    """A relay that is fed with chunks and whose output is looked at."""

    def __init__(self, *, flavour: Flavour = "chat", asked: str = "smol", **wants: bool) -> None:
        self.state = StreamState()
        given_wants = {"wants_usage": False, "wants_progress": False, **wants}
        self.relay = Relay(self.state, flavour=flavour, asked_model=asked, request_id="req-1", **given_wants)
        self.sent = b""

    def take(self, *payloads: dict[str, Any] | bytes) -> bytes:
        """Feed chunks; what they made the client get."""
        out = b""
        for payload in payloads:
            event = read_event(payload if isinstance(payload, bytes) else json.dumps(payload).encode())
            assert event is not None
            self.state.observe(event)
            out += self.relay.take(event)
        self.sent += out
        return out


def events(data: bytes) -> list[dict[str, Any]]:
    """The JSON payloads of a piece of a stream."""
    lines = [line.removeprefix("data: ") for line in data.decode().split("\n\n") if line]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_unchanged_chunks_go_on_byte_for_byte() -> None:
    payload = b'{"choices" : [ ], "model":"smol", "future_field": {"a": 1.50}}'
    assert Stream().take(payload) == b"data: " + payload + b"\n\n"


def test_the_model_is_called_what_the_client_called_it() -> None:
    assert events(Stream(asked="gpt").take(piece("a")))[0] == {**piece("a"), "model": "gpt"}


def test_line_breaks_between_tokens_do_not_split_an_event() -> None:
    out = Stream().take(b'{"choices":\r\n[{"index":0,"delta":{"content":"a"}}]}')
    assert out == b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'


def test_a_role_waits_for_the_first_piece() -> None:
    stream = Stream()
    assert stream.take(role()) == b""
    assert [e["choices"][0]["delta"] for e in events(stream.take(piece("a")))] == [
        {"role": "assistant", "content": None},
        {"content": "a"},
    ]


def test_a_role_is_sent_once() -> None:
    stream = Stream()
    with_role = chunk(choices=[{"index": 0, "delta": {"role": "assistant", "content": "b"}}])
    stream.take(role(), role(), piece("a"), role(), with_role)
    assert stream.sent.count(b'"role"') == 1
    assert events(stream.sent)[-1]["choices"][0]["delta"] == {"content": "b"}


def test_each_choice_gets_its_role() -> None:
    stream = Stream()
    second = chunk(choices=[{"index": 1, "delta": {"role": "assistant", "content": None}}])
    stream.take(role(), piece("a"), second, piece("b", 1))
    roles = [e["choices"][0]["index"] for e in events(stream.sent) if "role" in e["choices"][0]["delta"]]
    assert roles == [0, 1]


def progress_chunk() -> dict[str, Any]:
    """Prompt progress as the engine sends it in a chat: with a role."""
    return {**role(), "prompt_progress": PROGRESS}


def test_progress_goes_only_to_those_who_asked() -> None:
    assert Stream().take(progress_chunk(), progress_chunk()) == b""


def test_progress_comes_without_the_role_it_was_sent_with() -> None:
    out = events(Stream(wants_progress=True).take(progress_chunk()))
    assert out[0]["prompt_progress"] == PROGRESS
    assert out[0]["choices"][0]["delta"] == {"content": None}


def test_the_role_of_progress_chunks_is_announced_with_the_first_piece() -> None:
    stream = Stream(wants_progress=True)
    stream.take(progress_chunk(), progress_chunk())
    first, second = events(stream.take(piece("a")))
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert "prompt_progress" not in first
    assert second["choices"][0]["delta"] == {"content": "a"}


def test_diffusion_frames_pass_as_they_are() -> None:
    frame = b'{"type": "diffusion_frame", "model": "x"}'
    assert Stream(asked="gpt").take(frame) == b"data: " + frame + b"\n\n"


def test_without_usage_no_chunk_is_added_and_timings_stand_on_the_finish_chunk() -> None:
    stream = Stream()
    stream.take(piece("a"), finish(), closing())
    end = stream.relay.finish()
    assert events(end) == [{**finish(), "timings": TIMINGS}]
    assert all(event["choices"] for event in events(stream.sent + end))


def test_a_finish_chunk_that_has_timings_keeps_them() -> None:
    stream = Stream()
    stream.take(piece("a"), finish(timings={"predicted_n": 1}))
    assert events(stream.relay.finish()) == [finish(timings={"predicted_n": 1})]


def test_with_usage_the_last_chunk_has_no_choices_and_the_numbers() -> None:
    stream = Stream(wants_usage=True)
    stream.take(piece("a"), finish(), closing())
    end = stream.relay.finish()
    assert events(end) == [{**CHUNK, "choices": [], "usage": USAGE, "timings": TIMINGS}]
    assert events(stream.sent)[-1] == finish()


def test_missing_usage_is_filled_from_timings() -> None:
    stream = Stream(wants_usage=True)
    stream.take(piece("a"), finish(timings=TIMINGS))
    assert events(stream.relay.finish())[0]["usage"] == USAGE


def test_usage_is_sent_once_however_often_the_engine_counts() -> None:
    stream = Stream(wants_usage=True)
    stream.take(finish(index=1), closing(), finish(index=0), closing())
    with_usage = [event for event in events(stream.sent + stream.relay.finish()) if "usage" in event]
    assert [event["usage"]["completion_tokens"] for event in with_usage] == [4]


def test_usage_of_a_plain_completion_moves_to_the_closing_chunk() -> None:
    stream = Stream(flavour="completion", wants_usage=True)
    last = {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}], "usage": USAGE}
    stream.take({"id": "c", "choices": [{"index": 0, "text": "a"}]}, last)
    out = events(stream.sent + stream.relay.finish())
    assert [event.get("usage") for event in out] == [None, None, USAGE]
    assert out[-1]["object"] == "text_completion"


def test_usage_of_a_plain_completion_stays_where_nobody_asked() -> None:
    stream = Stream(flavour="completion")
    last = {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}], "usage": USAGE}
    stream.take(last)
    assert events(stream.relay.finish()) == [last]


def test_finish_chunks_of_several_choices_keep_their_order() -> None:
    stream = Stream()
    stream.take(piece("a", 0), finish(index=0), piece("b", 1), finish(index=1))
    out = events(stream.sent + stream.relay.finish())
    assert [(e["choices"][0]["index"], e["choices"][0].get("finish_reason")) for e in out] == [
        (0, None),
        (0, "stop"),
        (1, None),
        (1, "stop"),
    ]


@pytest.mark.parametrize("end", ["finish", "fail", "cancelled"])
def test_every_end_has_one_end_mark(end: str) -> None:
    stream = Stream()
    stream.take(role(), piece("a"), finish())
    data = {
        "finish": stream.relay.finish,
        "fail": lambda: stream.relay.fail(FAILURE),
        "cancelled": stream.relay.cancelled,
    }[end]()
    assert data.count(b"data: [DONE]\n\n") == 1
    assert data.endswith(b"data: [DONE]\n\n")


def test_an_error_comes_after_what_was_held_back() -> None:
    stream = Stream()
    stream.take(piece("a"), finish())
    held, error = events(stream.relay.fail(FAILURE))
    assert held == finish()
    assert error["error"]["code"] == "stream_stalled"


def test_a_cancel_finishes_every_open_choice_and_says_so() -> None:
    stream = Stream(wants_usage=True)
    stream.take(piece("a", 0), piece("b", 1), finish(index=1), closing())
    last, close = events(stream.relay.cancelled())
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert close == {**CHUNK, "choices": [], "usage": USAGE, "timings": TIMINGS, "cancelled": True}


def test_a_cancel_before_anything_came_is_a_whole_stream() -> None:
    last, close = events(Stream(asked="gpt").relay.cancelled())
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert last["model"] == "gpt"
    assert close["cancelled"] is True


@given(st.lists(st.text(max_size=5), max_size=10), st.booleans())
def test_text_only_grows(texts: list[str], wants_usage: bool) -> None:
    stream = Stream(asked="gpt", wants_usage=wants_usage)
    sent = ""
    for text in texts:
        out = events(stream.take(piece(text)))
        sent += "".join(event["choices"][0]["delta"]["content"] for event in out)
    assert sent == "".join(texts)


def wire(payload: dict[str, Any]) -> bytes:
    """A chunk as the engine sends it."""
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


WIRES = [
    *(
        wire(one)
        for one in (role(), piece("a"), piece("\u00e4\ud83d\ude00"), piece("b", 1), finish(), closing())
    ),
    *(wire(one) for one in (finish("length", 1), {**role(), "prompt_progress": PROGRESS}, {"error": None})),
    b": ping\n\n",
    b"data: no json\n\n",
    b'data: {"choices":\ndata: []}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":"\xff"}}]}\r\n\r\n',
]


def passed_on(chunks: list[bytes], **wants: bool) -> bytes:
    """What the client gets when the engine's stream arrives in these chunks."""
    stream, reader = Stream(asked="gpt", **wants), SseReader(2**20)
    out = b""
    for chunk_of_wire in [*chunks, b""]:
        payloads = reader.feed(chunk_of_wire) if chunk_of_wire else reader.finish()
        events_of_chunk = [event for payload in payloads if (event := read_event(payload)) is not None]
        # As the driver does: all that arrived together is counted in first.
        for event in events_of_chunk:
            stream.state.observe(event)
        out += b"".join(stream.relay.take(event) for event in events_of_chunk)
    return out + stream.relay.finish()


@given(
    st.lists(st.sampled_from(WIRES), max_size=8),
    st.lists(st.integers(0, 10_000), max_size=8),
    st.booleans(),
    st.booleans(),
)
def test_how_a_stream_is_cut_changes_nothing(
    parts: list[bytes], at: list[int], wants_usage: bool, wants_progress: bool
) -> None:
    stream = b"".join(parts)
    cuts = sorted(number % (len(stream) + 1) for number in at)
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True) if a < b]
    wants = {"wants_usage": wants_usage, "wants_progress": wants_progress}
    byte_by_byte = [stream[at : at + 1] for at in range(len(stream))]
    assert passed_on(chunks, **wants) == passed_on(byte_by_byte, **wants)
    assert passed_on(parts, **wants) == passed_on(byte_by_byte, **wants)
