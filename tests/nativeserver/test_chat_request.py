"""A chat body becomes a prompt and the limits of its reply, or a 400 that says why not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from framework.chat.builtin_templates import BUILTIN_TEMPLATES
from framework.chat.gbnf_check import check_grammar
from framework.chat.template import ChatTemplate
from framework.nativeserver.bridge import EngineBridge
from framework.nativeserver.chat_request import ChatPrepared, prepare
from framework.nativeserver.errors import ApiError
from framework.nativeserver.options import ChatOptions, ServerOptions
from framework.nativeserver.services import Services

CHATML = BUILTIN_TEMPLATES["chatml"]
# In the manner of Qwen 3: tools, calls in tags, and reasoning that a variable switches off.
THINKING = r"""{%- if tools %}<tools>{{ tools | tojson }}</tools>
{% endif %}
{%- for message in messages %}
<|im_start|>{{ message.role }}
{%- if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}
{{- '\n' ~ message.content }}
{%- for call in message.tool_calls %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{%- endfor %}
{%- if add_generation_prompt %}
<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% else %}<think>
{% endif %}
{%- endif %}"""
USER = {"role": "user", "content": "hi"}
SURE = {"role": "assistant", "content": "Sure"}
HEAD = "<|im_start|>user\nhi<|im_end|>"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
NAMED = {"type": "function", "function": {"name": "get_weather"}}


class LoadedCore:
    """The compiled core as far as prompts are concerned: a model that adds a first token by itself."""

    def meta(self) -> Any:
        return SimpleNamespace(adds_bos=True, bos_text="<s>")


def _prepared(
    body: dict[str, Any], template: str | None = THINKING, chat: ChatOptions | None = None
) -> ChatPrepared:
    bridge = EngineBridge(LoadedCore(), None)  # type: ignore[arg-type]
    services = Services(ServerOptions(engine={}, chat=chat or ChatOptions()), bridge, "model", 0)
    services.templates = None if template is None else ChatTemplate(template, bos="<s>", eos="</s>")
    return prepare({"messages": [USER], **body}, services)


def _refusal(body: dict[str, Any], template: str | None = THINKING, chat: ChatOptions | None = None) -> str:
    with pytest.raises(ApiError) as refused:
        _prepared(body, template, chat)
    assert refused.value.status == 400
    return refused.value.message


def test_a_plain_chat_has_a_prompt_and_no_limits() -> None:
    prepared = _prepared({"temperature": 0.5, "stop": ["x"]}, CHATML)
    assert prepared.prompt == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert prepared.generation_prompt == "<|im_start|>assistant\n"
    assert prepared.fields == {"temperature": 0.5, "stop": ["x"]}
    assert not prepared.starts_in_reasoning
    assert not prepared.parse_tools


def test_the_first_token_is_left_to_the_tokenizer() -> None:
    assert _prepared({}, "{{ bos_token }}{{ messages[0].content }}").prompt == "hi"


def test_reasoning_that_the_template_opens_is_known() -> None:
    prepared = _prepared({})
    assert prepared.prompt == f"{HEAD}<|im_start|>assistant\n<think>\n"
    assert prepared.generation_prompt == "<|im_start|>assistant\n<think>\n"
    assert prepared.starts_in_reasoning
    assert prepared.fields["reasoning_budget_end_tags"] == ["</think>"]
    params = SimpleNamespace(sampling=SimpleNamespace(reasoning=SimpleNamespace(starts_open=False)))
    prepared.apply(params)
    assert params.sampling.reasoning.starts_open


@pytest.mark.parametrize(
    ("body", "chat"),
    [
        ({"chat_template_kwargs": {"enable_thinking": False}}, ChatOptions()),
        ({"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}}, ChatOptions()),
        ({}, ChatOptions(reasoning="off")),
        ({}, ChatOptions(template_kwargs={"enable_thinking": False})),
    ],
)
def test_thinking_can_be_switched_off(body: dict[str, Any], chat: ChatOptions) -> None:
    prepared = _prepared(body, chat=chat)
    assert prepared.generation_prompt == "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    assert not prepared.starts_in_reasoning


def test_an_effort_reaches_the_template_in_its_own_words() -> None:
    template = "{{ reasoning_effort }}|{{ messages[0].content }}"
    assert _prepared({"reasoning_effort": "xhigh"}, template).prompt == "high|hi"
    asked = {"reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "mine"}}
    assert _prepared(asked, template).prompt == "mine|hi"


@pytest.mark.parametrize(
    ("message", "end"),
    [
        (SURE, "<think></think>Sure"),
        ({"role": "assistant", "content": [{"type": "text", "text": "Sure"}]}, "<think></think>Sure"),
        ({**SURE, "reasoning_content": "hm"}, "<think>hm</think>Sure"),
        ({"role": "assistant", "content": "", "reasoning_content": "hm"}, "<think>hm"),
    ],
)
def test_a_last_message_of_the_assistant_is_continued(message: dict[str, Any], end: str) -> None:
    prepared = _prepared({"messages": [USER, message]})
    assert prepared.prompt == f"{HEAD}<|im_start|>assistant\n{end}"
    assert prepared.generation_prompt == f"<|im_start|>assistant\n{end}"
    assert prepared.starts_in_reasoning is (message["content"] == "")


def test_a_server_can_leave_last_messages_as_they_are() -> None:
    chat = ChatOptions(prefill_assistant=False)
    assert "Sure<|im_end|>" in _prepared({"messages": [USER, SURE]}, chat=chat).prompt
    asked = {"messages": [USER, SURE], "continue_final_message": True, "add_generation_prompt": False}
    assert _prepared(asked, chat=chat).prompt.endswith("Sure")


def test_a_prompt_without_the_start_of_a_reply() -> None:
    prepared = _prepared({"add_generation_prompt": False})
    assert (prepared.prompt, prepared.generation_prompt) == (HEAD, "")


def test_tools_are_shown_and_may_be_called() -> None:
    prepared = _prepared({"tools": [TOOL]})
    assert prepared.prompt.startswith("<tools>[{")
    assert prepared.parse_tools
    assert prepared.fields["grammar_lazy"] is True
    assert prepared.fields["grammar_triggers"]
    check_grammar(prepared.fields["grammar"])


@pytest.mark.parametrize("choice", ["required", NAMED])
def test_a_call_that_is_asked_for_comes_after_the_reasoning(choice: Any) -> None:
    fields = _prepared({"tools": [TOOL], "tool_choice": choice}).fields
    assert fields["grammar_lazy"] is False
    assert fields["grammar"].startswith("root ::= reasoning-text ")
    check_grammar(fields["grammar"])


def test_tools_that_may_not_be_called_are_still_shown() -> None:
    prepared = _prepared({"tools": [TOOL], "tool_choice": "none", "grammar": 'root ::= "a"'})
    assert prepared.prompt.startswith("<tools>[{")
    assert not prepared.parse_tools
    assert prepared.fields["grammar"] == 'root ::= "a"'


def test_tools_of_a_template_that_knows_none_are_ignored_unless_a_call_is_asked_for() -> None:
    prepared = _prepared({"tools": [TOOL]}, CHATML)
    assert not prepared.parse_tools
    assert "grammar" not in prepared.fields
    assert "no tools" in _refusal({"tools": [TOOL], "tool_choice": "required"}, CHATML)


@pytest.mark.parametrize(
    "body",
    [
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_object", "schema": {"type": "integer"}}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "integer"}}}},
        {"json_schema": {"type": "integer"}},
        {"json_schema": {"type": "integer"}, "tools": [TOOL]},
    ],
)
def test_a_form_of_the_reply_becomes_a_grammar(body: dict[str, Any]) -> None:
    fields = _prepared(body).fields
    assert fields["grammar"].startswith("root ::= reasoning-text ")
    assert not {"response_format", "json_schema", "tools"} & set(fields)
    without_thinking = {**body, "chat_template_kwargs": {"enable_thinking": False}}
    assert "reasoning" not in _prepared(without_thinking).fields["grammar"]


def test_a_response_format_of_text_limits_nothing() -> None:
    assert "grammar" not in _prepared({"response_format": {"type": "text"}}).fields


@pytest.mark.parametrize(
    ("body", "n_probs"),
    [({"logprobs": True}, 20), ({"logprobs": True, "top_logprobs": 3}, 3), ({"logprobs": False}, None)],
)
def test_log_probabilities_become_a_count(body: dict[str, Any], n_probs: int | None) -> None:
    fields = _prepared(body).fields
    assert fields.get("n_probs") == n_probs
    assert "logprobs" not in fields


def test_the_budget_of_the_server_is_used_unless_the_request_has_one() -> None:
    chat = ChatOptions(reasoning_budget=7, reasoning_budget_message="enough")
    assert _prepared({}, chat=chat).fields["reasoning_budget_tokens"] == 7
    assert _prepared({"reasoning_budget_tokens": 3}, chat=chat).fields["reasoning_budget_tokens"] == 3
    assert "reasoning_budget_tokens" not in _prepared({}, CHATML, chat).fields


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"messages": None}, "Expected 'messages' to be an array"),
        ({"messages": [USER, SURE, SURE]}, "Cannot have 2 or more assistant messages"),
        ({"continue_final_message": True}, "Cannot set both"),
        ({"continue_final_message": True, "add_generation_prompt": False}, "needs a last message"),
        ({"tools": {}}, "'tools': type must be array, but is object"),
        ({"tools": [{"type": "foo"}]}, "entry 0 must be an object with type 'function'"),
        ({"tools": [{"type": "function", "function": {}}]}, "needs a 'function'"),
        ({"tools": [TOOL] * 2000}, "are allowed"),
        ({"tools": [TOOL], "tool_choice": "foo"}, "Invalid tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"function": {"name": "x"}}}, "not one of tools"),
        ({"tools": [TOOL], "grammar": 'root ::= "a"'}, "Cannot use custom grammar constraints with tools."),
        ({"json_schema": {}, "grammar": 'root ::= "a"'}, "Cannot use both json_schema and grammar"),
        ({"json_schema": {"type": "foo"}}, "unknown type"),
        ({"grammar": "root ::= ("}, "line 1 of the grammar"),
        ({"grammar": 3}, "'grammar': type must be string, but is number"),
        ({"response_format": "json"}, "'response_format': type must be object, but is string"),
        ({"response_format": {"type": "foo"}}, "must be one of"),
        ({"response_format": {"type": "json_schema"}}, "needs json_schema.schema"),
        ({"chat_template_kwargs": []}, "'chat_template_kwargs': type must be object"),
        ({"chat_template_kwargs": {"enable_thinking": "no"}}, 'invalid type for "enable_thinking"'),
        ({"reasoning_format": "foo"}, "Unknown reasoning format"),
        ({"top_logprobs": 3}, "top_logprobs requires logprobs"),
        ({"logprobs": True, "top_logprobs": -1}, "whole number"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "image input is not supported",
        ),
    ],
)
def test_what_can_not_be_done_is_named(body: dict[str, Any], told: str) -> None:
    assert told in _refusal(body)


def test_errors_of_the_template_reach_the_client() -> None:
    assert "not so (line 1" in _refusal({}, "{{ raise_exception('not so') }}")


def test_a_model_without_template_can_not_chat() -> None:
    assert "no chat template" in _refusal({}, None)


def test_tools_need_the_engine_of_templates() -> None:
    assert "--jinja" in _refusal({"tools": [TOOL]}, chat=ChatOptions(jinja=False))
