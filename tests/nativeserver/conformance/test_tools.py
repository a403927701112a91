"""Calls of tools, with a chat template that has them. The ids of calls are drawn, and are not compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nativeserver.conformance.comparing import assert_same
from tests.nativeserver.conformance.requests import COLOURS, greedy
from tests.support.engine_pair import EnginePair, running_pair

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\nYou may call functions. Their signatures:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\nReturn each call as:\\n<tool_call>\\n" }}
    {{- '{"name": <function-name>, "arguments": <args-json-object>}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first)
        or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather",
        "parameters": {
            "type": "object",
            "properties": {
                "days": {"type": "integer", "enum": [1, 2]},
                "unit": {"enum": ["celsius", "kelvin"]},
            },
            "required": ["days", "unit"],
        },
    },
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"days": 1}'}}
ASKED = [{"role": "user", "content": "What is the weather of the next two days in celsius?"}]


@pytest.fixture(scope="module")
def callers(
    engine_binary: Path, smollm2: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EnginePair]:
    """Both with the template."""
    folder = tmp_path_factory.mktemp("tools")
    template = folder / "template.jinja"
    template.write_text(TEMPLATE)
    flags = ("-c", "2048", "-np", "2", "--chat-template-file", str(template))
    with running_pair(engine_binary, smollm2, folder, *flags) as running:
        yield running


def wished(**fields: Any) -> dict[str, Any]:
    return greedy(messages=ASKED, tools=[WEATHER], max_tokens=48, **fields)


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_a_reply_that_may_have_calls_is_the_same(callers: EnginePair, choice: str) -> None:
    real, native = callers.post("/v1/chat/completions", wished(tool_choice=choice))
    assert_same(native, real)


def test_a_call_that_is_asked_for_is_made(callers: EnginePair) -> None:
    real, native = callers.post("/v1/chat/completions", wished(tool_choice="required"))
    choice = native["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], call["function"]["name"]) == ("tool_calls", "weather")
    assert json.loads(call["function"]["arguments"])["days"] in (1, 2)
    # The real one lets text come first, and this model never ends it.
    assert real["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param(COLOURS, id="one"),
        pytest.param(
            [
                *ASKED,
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
            ],
            id="answered-call",
        ),
        pytest.param([{"role": "system", "content": "Be brief."}, *ASKED], id="system"),
    ],
)
def test_a_template_with_tools_gives_the_same_prompt(callers: EnginePair, messages: list[Any]) -> None:
    real, native = callers.post("/apply-template", {"messages": messages, "tools": [WEATHER]})
    assert_same(native, real)
