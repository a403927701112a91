"""The families of generation routes besides chat, each with a request and an answer of its engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.proxy.asgi_client import AsgiCall
from tests.proxy.scripted_engine import Call


@dataclass(frozen=True)
class Family:
    """`opening` brings nothing of the answer, `pieces` say "Hello", `end` ends it."""

    path: str
    body: dict[str, Any]
    opening: tuple[dict[str, Any], ...]
    pieces: tuple[dict[str, Any], ...]
    end: tuple[dict[str, Any], ...]
    text: Callable[[Any], str]
    """What a whole answer says."""
    said: Callable[[list[dict[str, Any]]], str]
    """What the events of a stream say."""
    last: str
    """What the last event of an answer is."""

    async def answer(self, call: Call) -> None:
        """The whole answer."""
        await call.start_stream()
        await call.events(*self.opening, *self.pieces, *self.end)
        await call.end(done=False)

    async def begin(self, call: Call) -> None:
        """The opening and the first piece, and nothing more."""
        await call.start_stream()
        await call.events(*self.opening, self.pieces[0])

    def request(self, **fields: Any) -> dict[str, Any]:
        """A body, with some fields more."""
        return {**self.body, **fields}


def block(text: str) -> dict[str, Any]:
    """A piece of a message."""
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


def delta(text: str) -> dict[str, Any]:
    """A piece of a response, as llama-server writes it: without its place."""
    return {"type": "response.output_text.delta", "item_id": "msg_1", "delta": text}


def partial(text: str, index: int = 0) -> dict[str, Any]:
    """A piece of a completion."""
    return {"index": index, "content": text, "tokens": [1], "stop": False}


ITEM = {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Hello"}]}
COUNTS = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
MESSAGES = Family(
    "/v1/messages",
    {"model": "gpt", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9},
    (
        {
            "type": "message_start",
            "message": {
                "id": "m1",
                "type": "message",
                "role": "assistant",
                "model": "smol",
                "content": [],
                "usage": {"input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 0},
            },
        },
    ),
    (
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        block("Hel"),
        block("lo"),
    ),
    (
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    ),
    lambda answer: "".join(part["text"] for part in answer["content"]),
    lambda events: "".join(event.get("delta", {}).get("text", "") for event in events),
    "message_stop",
)
RESPONSES = Family(
    "/v1/responses",
    {"model": "gpt", "input": "hi", "max_output_tokens": 9},
    (
        {"type": "response.created", "response": {"id": "r1", "status": "in_progress"}},
        {"type": "response.in_progress", "response": {"id": "r1", "status": "in_progress"}},
    ),
    (
        {"type": "response.output_item.added", "item": {"type": "message", "id": "msg_1", "content": []}},
        delta("Hel"),
        delta("lo"),
    ),
    (
        {"type": "response.output_item.done", "item": ITEM},
        {
            "type": "response.completed",
            "response": {"id": "r1", "status": "completed", "output": [ITEM], "usage": COUNTS},
            "timings": {"prompt_n": 3, "predicted_n": 2},
        },
    ),
    lambda answer: "".join(part["text"] for item in answer["output"] for part in item["content"]),
    lambda events: "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta"),
    "response.completed",
)
COMPLETION = Family(
    "/completion",
    {"model": "gpt", "prompt": "hi", "n_predict": 9},
    (),
    (partial("Hel"), partial("lo")),
    (
        {
            "index": 0,
            "content": "",
            "tokens": [],
            "stop": True,
            "model": "smol",
            "stop_type": "eos",
            "tokens_predicted": 2,
            "tokens_evaluated": 3,
            "timings": {"cache_n": 2, "predicted_n": 2},
        },
    ),
    lambda answer: answer["content"],
    lambda events: "".join(event["content"] for event in events),
    "",
)
FAMILIES = {"messages": MESSAGES, "responses": RESPONSES, "completion": COMPLETION}


def named_events(call: AsgiCall) -> list[tuple[str, dict[str, Any]]]:
    """The events of a stream with the names on their `event:` lines."""
    frames = [frame for frame in call.body.decode().split("\n\n") if "data: " in frame]
    names = [frame.partition("\ndata: ")[0].removeprefix("event: ") for frame in frames]
    return list(zip((name if "data: " not in name else "" for name in names), call.events(), strict=True))
