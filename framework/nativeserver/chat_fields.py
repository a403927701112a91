"""Fields of a chat body that decide how it becomes a prompt (12 §8.1). Called by nativeserver.chat_request.

`null` counts as absent; a wrong type is an ApiError that names the field (12 §5.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from framework.nativeserver.conversion import optional, refusal
from framework.nativeserver.options import ChatOptions

ToolChoice = Literal["auto", "none", "required"]
CHOICES: tuple[ToolChoice, ...] = ("auto", "none", "required")
REASONING_FORMATS = ("none", "auto", "deepseek", "deepseek-legacy")
RESPONSE_TYPES = ("text", "json_object", "json_schema")
TOP_LOGPROBS = 20
MAX_TOOLS = 1024
ANY_OBJECT: Mapping[str, Any] = {"type": "object"}


@dataclass(frozen=True)
class ChatFields:
    """What was asked for, checked."""

    messages: Any
    tools: tuple[Mapping[str, Any], ...]
    """As they were sent; each has `function.name`. Templates see them whatever `tool_choice` is."""
    tool_choice: ToolChoice
    tool_name: str | None
    """The one that has to be called."""
    parallel_tool_calls: bool
    schema: Any
    """Of the whole reply; None: there is none."""
    grammar: str
    template_kwargs: Mapping[str, Any]
    reasoning_effort: str | None
    reasoning_format: str
    add_generation_prompt: bool
    continue_final_message: bool
    n_probs: int | None

    @property
    def callable_tools(self) -> tuple[Mapping[str, Any], ...]:
        """Those that the reply may call."""
        return () if self.tool_choice == "none" else self.tools


def read_chat_fields(body: Mapping[str, Any], options: ChatOptions) -> ChatFields:
    """Checks a body; raises ApiError."""
    choice, name = _tool_choice(body)
    tools = _tools(body)
    if name is not None and name not in {tool["function"]["name"] for tool in tools}:
        raise refusal(f"tool_choice names the function {name!r:.80}, which is not one of tools")
    schema, grammar = _schema(body), _of(body, "grammar", str, "")
    if grammar and schema is not None:
        raise refusal("Cannot use both json_schema and grammar")
    if grammar and tools and choice != "none":
        raise refusal("Cannot use custom grammar constraints with tools.")
    if tools and not options.jinja:
        raise refusal("tools param requires --jinja flag")
    adds = _of(body, "add_generation_prompt", bool, True)
    continues = _of(body, "continue_final_message", bool, False)
    if adds and continues:
        raise refusal("Cannot set both add_generation_prompt and continue_final_message to true.")
    return ChatFields(
        messages=body.get("messages"),
        tools=tools,
        tool_choice=choice,
        tool_name=name,
        parallel_tool_calls=_of(body, "parallel_tool_calls", bool, False),
        schema=schema,
        grammar=grammar,
        template_kwargs=_template_kwargs(body, options),
        reasoning_effort=_of(body, "reasoning_effort", str, options.reasoning_effort),
        reasoning_format=_reasoning_format(body, options),
        add_generation_prompt=adds,
        continue_final_message=continues,
        n_probs=_n_probs(body),
    )


def _of(body: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    """A field of one JSON type."""
    value = optional(body, name, kind)
    return default if value is None else value


def _tools(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    tools = _of(body, "tools", list, [])
    if len(tools) > MAX_TOOLS:
        raise refusal(f"Field 'tools': {len(tools)} tools; {MAX_TOOLS} are allowed")
    for at, tool in enumerate(tools):
        if not isinstance(tool, dict) or tool.get("type") != "function":
            raise refusal(f"Field 'tools': entry {at} must be an object with type 'function'")
        function = tool.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise refusal(f"Field 'tools': entry {at} needs a 'function' with a string 'name'")
    return tuple(tools)


def _tool_choice(body: Mapping[str, Any]) -> tuple[ToolChoice, str | None]:
    choice = body.get("tool_choice")
    if choice is None:
        return "auto", None
    for known in CHOICES:
        if choice == known:
            return known, None
    function = choice.get("function") if isinstance(choice, dict) else None
    if isinstance(function, dict) and isinstance(name := function.get("name"), str):
        return "required", name
    raise refusal(f"Invalid tool_choice: {choice!r:.80}; it is auto, none, required or names a function")


def _schema(body: Mapping[str, Any]) -> Any:
    """The schema of `response_format`, or the field `json_schema`."""
    wanted, own = _of(body, "response_format", dict, {}), body.get("json_schema")
    kind = wanted.get("type", "text")
    if kind not in RESPONSE_TYPES:
        allowed = ", ".join(RESPONSE_TYPES)
        raise refusal(f"response_format type must be one of {allowed}, but got: {kind!r:.80}")
    if kind == "text":
        return own
    if own is not None:
        raise refusal("Cannot use both json_schema and a response_format that is not text")
    if kind == "json_object":
        return wanted.get("schema") or ANY_OBJECT
    described = wanted.get("json_schema")
    if not isinstance(described, dict) or described.get("schema") is None:
        raise refusal("response_format of type json_schema needs json_schema.schema")
    return described["schema"]


def _template_kwargs(body: Mapping[str, Any], options: ChatOptions) -> Mapping[str, Any]:
    """The server's, then the request's."""
    merged = {**options.template_kwargs, **_of(body, "chat_template_kwargs", dict, {})}
    thinking = merged.get("enable_thinking")
    if thinking is not None and not isinstance(thinking, bool):
        raise refusal('invalid type for "enable_thinking" (expected boolean)')
    return merged


def _reasoning_format(body: Mapping[str, Any], options: ChatOptions) -> str:
    name: str = _of(body, "reasoning_format", str, options.reasoning_format)
    if name not in REASONING_FORMATS:
        raise refusal(f"Unknown reasoning format: {name!r:.80}; known are {', '.join(REASONING_FORMATS)}")
    return name


def _n_probs(body: Mapping[str, Any]) -> int | None:
    """Alternatives to tell of each token; None: the field was not used."""
    wanted, count = _of(body, "logprobs", bool, False), body.get("top_logprobs")
    if count is None:
        return TOP_LOGPROBS if wanted else None
    if not wanted:
        raise refusal("top_logprobs requires logprobs to be set to true")
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise refusal("Field 'top_logprobs': must be a whole number from 0")
    return count
