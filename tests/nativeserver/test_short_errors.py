"""An error names what was sent, and does not send it back whole."""

from __future__ import annotations

from typing import Any

import pytest

from framework.nativeserver.errors import MOST_MESSAGE, ApiError
from tests.nativeserver.small_world import SmallWorld, small_world

LONG = "b" * 100_000
# Names, punctuation and the rest of the envelope.
MOST_ANSWER = MOST_MESSAGE + 500
USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CHAT = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        pytest.param(CHAT, {"reasoning_format": LONG}, "known are none", id="reasoning_format"),
        pytest.param(
            CHAT,
            {"tools": [TOOL], "tool_choice": {"function": {"name": LONG}}},
            "not one of tools",
            id="named tool",
        ),
        pytest.param(CHAT, {"tool_choice": LONG}, "auto, none, required", id="tool_choice"),
        pytest.param(CHAT, {"response_format": {"type": LONG}}, "json_object", id="response_format"),
        pytest.param(CHAT, {"json_schema": {"type": LONG}}, "", id="type of a schema"),
        pytest.param(CHAT, {"json_schema": {"$ref": LONG}}, "", id="reference of a schema"),
        pytest.param(CHAT, {"grammar": f"root ::= {LONG}"}, "", id="rule of a grammar"),
        pytest.param(CHAT, {"messages": [{"role": LONG}]}, "", id="role"),
        pytest.param(CHAT, {"messages": [{**USER, "content": [{"type": LONG}]}]}, "", id="part"),
        pytest.param("/v1/responses", {"input": [{"type": LONG}]}, "known are message", id="item"),
        pytest.param(
            "/v1/responses", {"input": "a", "tools": [{"type": LONG}]}, "function", id="kind of tool"
        ),
        pytest.param(
            "/v1/messages", {"messages": [USER], "thinking": {"type": LONG}}, "adaptive", id="thinking"
        ),
        pytest.param(
            "/completion",
            {"prompt": "a", "grammar_triggers": [{"type": 1, "value": "a"}, {"type": 9, "value": LONG}]},
            "preserved_tokens",
            id="trigger",
        ),
        pytest.param(
            "/v1/chat/completions/control", {"id": "a", "action": LONG}, "reasoning_end", id="control"
        ),
    ],
)
async def test_an_error_stays_short(path: str, body: dict[str, Any], told: str) -> None:
    async with small_world() as world:
        given = {"messages": [USER], **body} if path == CHAT else body
        answer = await world.post(path, given)
        assert answer.status_code == 400
        assert len(answer.content) <= MOST_ANSWER
        assert told in answer.json()["error"]["message"]


async def _error_of(world: SmallWorld, body: dict[str, Any]) -> str:
    message: str = (await world.post(CHAT, body)).json()["error"]["message"]
    return message


async def test_what_a_template_says_is_cut() -> None:
    async with small_world() as world:
        source = "{{ raise_exception(messages[0]['content']) }}"
        services = world.app.state.services
        services.templates = type(services.templates)(source, bos="", eos="")
        message = await _error_of(world, {"messages": [{"role": "user", "content": LONG}]})
        assert message.startswith("bbb")
        assert len(message) <= MOST_MESSAGE + len("...")


def test_a_message_of_ordinary_length_is_whole() -> None:
    assert ApiError("invalid_request", "x" * MOST_MESSAGE).error_object()["message"] == "x" * MOST_MESSAGE


async def test_the_name_of_a_model_that_is_told_again_is_bounded() -> None:
    async with small_world(embeddings=True) as world:
        answer = await world.post("/v1/embeddings", {"input": "a", "model": LONG})
        assert answer.status_code == 400
        assert "at most 1024" in answer.json()["error"]["message"]
