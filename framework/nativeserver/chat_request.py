"""A chat body becomes a prompt and the limits of its reply (12 §8.1-8.3).

Called by the chat, responses and messages endpoints, by apply-template and by the counters of tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.chat.formats import ReplyFormat, detect_format
from framework.chat.gbnf import GrammarError
from framework.chat.gbnf_check import check_grammar
from framework.chat.json_schema import SchemaError, schema_to_gbnf
from framework.chat.messages import MessageError
from framework.chat.reasoning_grammar import after_reasoning
from framework.chat.template import ChatTemplate, TemplateError
from framework.models.template_caps import template_capabilities
from framework.models.thinking import request_arguments
from framework.nativeserver.chat_fields import ChatFields, read_chat_fields
from framework.nativeserver.chat_prompt import ChatPrompt, make_prompt
from framework.nativeserver.conversion import refusal
from framework.nativeserver.off_loop import is_large, off_loop_if
from framework.nativeserver.options import ChatOptions
from framework.nativeserver.services import Services
from framework.nativeserver.task_shapes import TRIGGER_TYPES

# Fields that are answered here and mean something else, or nothing, to the reader of the others.
_CHAT_ONLY = frozenset(
    (
        *(
            "messages",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "response_format",
            "json_schema",
            "grammar",
        ),
        *("chat_template_kwargs", "reasoning_effort", "reasoning_format", "add_generation_prompt"),
        *("continue_final_message", "logprobs", "top_logprobs", "prompt"),
    )
)

_WITH_GRAMMAR = ("tools", "response_format", "json_schema", "grammar")


@dataclass(frozen=True)
class ChatPrepared:
    """What the driver and the parser of the reply need."""

    prompt: str
    format: ReplyFormat
    parse_tools: bool
    reasoning_format: str
    generation_prompt: str
    """What of the prompt already belongs to the reply."""
    starts_in_reasoning: bool
    begun: str
    """What the client wrote of the reply: the answer begins with it, as with llama-server."""
    fields: Mapping[str, Any] = field(repr=False)
    """The body for `fields.read_generation`: what the client asked for and what the chat needs."""

    def apply(self, params: Any) -> None:
        """Sets on GenerationParams what no field can say."""
        params.sampling.reasoning.starts_open = self.starts_in_reasoning


def prepare(body: Mapping[str, Any], services: Services) -> ChatPrepared:
    """Raises ApiError for whatever can't be done."""
    template, options = _template(services), services.options.chat
    wanted = read_chat_fields(body, options)
    form = detect_format(template.source)
    can_call = template.caps["supports_tools"]
    if not can_call and wanted.tools and wanted.tool_choice == "required":
        raise refusal("tool_choice asks for a call, but the chat template of this model has no tools")
    try:
        prompt = make_prompt(wanted, template, form, _variables(wanted, template, options), options)
        limits = _limits(wanted, form, prompt, can_call=can_call, skip=options.skip_parsing)
    except (MessageError, TemplateError, SchemaError, GrammarError) as error:
        raise refusal(str(error)) from error
    kept = {name: value for name, value in body.items() if name not in _CHAT_ONLY}
    return ChatPrepared(
        prompt=_without_bos(prompt.text, services),
        format=form,
        parse_tools=bool(wanted.callable_tools) and can_call and not options.skip_parsing,
        reasoning_format=wanted.reasoning_format,
        generation_prompt=prompt.generation_prompt,
        starts_in_reasoning=prompt.starts_in_reasoning,
        begun=prompt.begun,
        fields={**kept, **_reasoning(body, form, options), **limits, **_probabilities(wanted)},
    )


async def prepare_off_loop(body: Mapping[str, Any], services: Services) -> ChatPrepared:
    """`prepare`, beside the event loop when there is much to read, or a grammar to make or to check."""
    beside = is_large(body) or any(body.get(name) for name in _WITH_GRAMMAR)
    return await off_loop_if(beside, prepare, body, services)


def _template(services: Services) -> ChatTemplate:
    if services.templates is None:
        raise refusal("This model has no chat template; name one with --chat-template")
    return services.templates


def _variables(wanted: ChatFields, template: ChatTemplate, options: ChatOptions) -> dict[str, Any]:
    """Named values for the template. Thinking is on where the template knows it, as with llama-server."""
    caps = template_capabilities(template.source)
    thinks = options.reasoning == "on" or (options.reasoning == "auto" and caps.supports_reasoning)
    variables: dict[str, Any] = {"enable_thinking": thinks}
    if wanted.reasoning_effort is not None:
        effort = wanted.reasoning_effort.strip().lower()
        variables["reasoning_effort"] = wanted.reasoning_effort
        variables |= request_arguments(caps, effort=effort)
    return variables | dict(wanted.template_kwargs)


def _limits(
    wanted: ChatFields, form: ReplyFormat, prompt: ChatPrompt, *, can_call: bool, skip: bool
) -> dict[str, Any]:
    """The grammar, in the fields of native requests: the client's, that of a schema, or that of the tools."""
    if wanted.grammar:
        check_grammar(wanted.grammar)
        return {"grammar": wanted.grammar}
    if wanted.schema is not None:
        return {"grammar": _whole_reply(schema_to_gbnf(wanted.schema), form, prompt), "grammar_lazy": False}
    tools = wanted.callable_tools
    if not tools or not can_call or skip:
        return {}
    if wanted.tool_name is not None:
        tools = tuple(tool for tool in tools if tool["function"]["name"] == wanted.tool_name)
    calls = form.tool_grammar(tools, wanted.tool_choice, wanted.parallel_tool_calls)
    if not calls.grammar:
        return {"preserved_tokens": list(calls.preserved)}
    grammar = calls.grammar if calls.lazy else _whole_reply(calls.grammar, form, prompt)
    check_grammar(grammar)
    return {
        "grammar": grammar,
        "grammar_lazy": calls.lazy,
        "grammar_triggers": [
            {"type": TRIGGER_TYPES[trigger.kind], "value": trigger.value} for trigger in calls.triggers
        ],
        "preserved_tokens": list(calls.preserved),
    }


def _whole_reply(grammar: str, form: ReplyFormat, prompt: ChatPrompt) -> str:
    """A grammar that holds from the first token has to leave room for reasoning."""
    if not form.reasoning_end or prompt.reasoning_is_over:
        return grammar
    return after_reasoning(
        grammar, form.reasoning_start, form.reasoning_end, is_open=prompt.starts_in_reasoning
    )


def _reasoning(body: Mapping[str, Any], form: ReplyFormat, options: ChatOptions) -> dict[str, Any]:
    """The tags of the format and the server's budget, for what the request does not set itself."""
    known: dict[str, Any] = {}
    if form.reasoning_end:
        known["reasoning_budget_start_tag"] = form.reasoning_start
        known["reasoning_budget_end_tags"] = [form.reasoning_end]
        known["reasoning_budget_tokens"] = options.reasoning_budget
        known["reasoning_budget_message"] = options.reasoning_budget_message
    return {name: value for name, value in known.items() if body.get(name) is None}


def _probabilities(wanted: ChatFields) -> dict[str, Any]:
    return {} if wanted.n_probs is None else {"n_probs": wanted.n_probs}


def _without_bos(prompt: str, services: Services) -> str:
    """The tokenizer adds the token itself where the model wants it; twice makes replies worse."""
    meta = services.bridge.meta
    if meta is not None and meta.adds_bos and meta.bos_text:
        return prompt.removeprefix(meta.bos_text)
    return prompt
