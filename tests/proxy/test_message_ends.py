"""Ends of messages that llama-server tells otherwise than the API does, and counts that it leaves out."""

from __future__ import annotations

import orjson
import pytest

from framework.proxy.message_whole import WholeMessage
from framework.proxy.messages_events import MessagesState, MessagesStream, usage_of
from framework.proxy.stream_events import StreamEvent


def delta(stop_sequence: str | None) -> StreamEvent:
    data = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": stop_sequence},
        "usage": {"output_tokens": 3},
    }
    return StreamEvent("model", orjson.dumps(data), data)


@pytest.mark.parametrize(("text", "told"), [("I", "stop_sequence"), (None, "end_turn")])
def test_a_stop_sequence_is_told_as_one(text: str | None, told: str) -> None:
    stream = MessagesStream(MessagesState(), asked_model="m", request_id="r")
    sent = stream.take(delta(text)).rpartition(b"data: ")[2]
    assert orjson.loads(sent)["delta"] == {"stop_reason": told, "stop_sequence": text}
    whole = WholeMessage(MessagesState(), asked_model="m", limit_bytes=1000)
    whole.take(delta(text))
    assert (whole.result()["stop_reason"], whole.result()["stop_sequence"]) == (told, text)


def test_a_prompt_that_was_not_counted_is_not_free() -> None:
    assert "prompt_tokens" not in usage_of({"output_tokens": 1})
    assert usage_of({"input_tokens": 0, "output_tokens": 1})["prompt_tokens"] == 0
