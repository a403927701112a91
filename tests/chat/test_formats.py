"""Formats told apart by templates, and grammars that make models write calls."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from framework.chat.builtin_templates import BUILTIN_TEMPLATES
from framework.chat.formats import CONTENT_ONLY, ToolGrammar, detect_format
from framework.chat.gbnf import GrammarError
from framework.chat.gbnf_check import check_grammar
from framework.chat.json_schema import SchemaError
from tests.chat.native_grammar import GrammarJudge
from tests.chat.reply_samples import BEGIN, BEGINS, END, ENDS, SEP

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "unit": {"type": "string", "enum": ["C", "F"]},
                },
                "required": ["city"],
            },
        },
    },
    {"type": "function", "function": {"name": "stop"}},
]
JSON = '{"city": "Oslo", "days": 2, "unit": "C"}'
BAD = '{"city": 5}'
TEMPLATES = {
    "hermes": "tools <tool_call>",
    "llama": "tools <|python_tag|>",
    "generic": "tools",
    "mistral-nemo": "[TOOL_CALLS]",
    "mistral": "[TOOL_CALLS] [ARGS]",
    "deepseek-r1": f"{BEGINS} ```json",
    "deepseek-v3.1": BEGINS,
    "command-r7b": "<|START_ACTION|>",
    "harmony": "<|start|> <|channel|>",
    "functionary-3.2": ">>>all",
    "functionary-3.1": "<function=",
    "kimi": "<|tool_calls_section_begin|>",
    "minimax": "<minimax:tool_call>",
    "qwen3-coder": "<tool_call><function=<parameter=",
    "glm": "<arg_key>",
    "seed": "<seed:tool_call>",
    "granite": "<|tool_call|>",
    "nemotron": "<TOOLCALL>",
    "lfm2": "<|tool_call_start|>",
    "firefunction": "functools[ tools",
}


def call_text(name: str, arguments: str) -> str:
    """A call of `get_weather` as the models write it that take its arguments as JSON."""
    shapes = {
        "hermes": '<tool_call>\n{"name": "get_weather", "arguments": %s}\n</tool_call>',
        "llama": '{"name": "get_weather", "parameters": %s}',
        "generic": '{"name": "get_weather", "arguments": %s}',
        "mistral-nemo": '[TOOL_CALLS][{"name": "get_weather", "arguments": %s}]',
        "mistral": "[TOOL_CALLS]get_weather[ARGS]%s",
        "deepseek-r1": f"{BEGINS}{BEGIN}function{SEP}get_weather\n```json\n%s\n```{END}{ENDS}",
        "deepseek-v3.1": f"{BEGINS}{BEGIN}get_weather{SEP}%s{END}{ENDS}",
        "command-r7b": '<|START_ACTION|>[{"tool_name": "get_weather", "parameters": %s}]<|END_ACTION|>',
        "harmony": "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>%s<|call|>",
        "functionary-3.2": "get_weather\n%s",
        "functionary-3.1": "<function=get_weather>%s</function>",
        "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        "<|tool_call_argument_begin|>%s<|tool_call_end|><|tool_calls_section_end|>",
        "granite": '<|tool_call|>[{"name": "get_weather", "arguments": %s}]',
        "nemotron": '<TOOLCALL>[{"name": "get_weather", "arguments": %s}]</TOOLCALL>',
        "lfm2": '<|tool_call_start|>[{"name": "get_weather", "arguments": %s}]<|tool_call_end|>',
        "firefunction": 'functools[{"name": "get_weather", "arguments": %s}]',
    }
    return shapes[name] % arguments


TAGGED = {
    "minimax": '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n'
    '<parameter name="days">2</parameter>\n</invoke>\n</minimax:tool_call>',
    "qwen3-coder": "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo <b>\n</parameter>\n"
    "<parameter=unit>\nF\n</parameter>\n</function>\n</tool_call>",
    "glm": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
    "seed": "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n</function>\n"
    "</seed:tool_call>",
}

# Where a call begins and ends.
BOUNDS = {
    "hermes": ("<tool_call>", "</tool_call>"),
    "mistral-nemo": ('{"name"', "}"),
    "kimi": ("<|tool_call_begin|>", "<|tool_call_end|>"),
    "qwen3-coder": ("<function=", "</function>"),
}


def required(name: str, *, parallel: bool = False) -> ToolGrammar:
    return detect_format(TEMPLATES[name]).tool_grammar(TOOLS, "required", parallel)


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("parallel", [False, True])
def test_every_grammar_is_one_that_the_engine_takes(name: str, choice: str, parallel: bool) -> None:
    limits = detect_format(TEMPLATES[name]).tool_grammar(TOOLS, choice, parallel)
    if choice == "required":
        assert limits.grammar
        assert not limits.lazy
    if limits.grammar:
        check_grammar(limits.grammar)
        assert limits.lazy == bool(limits.triggers) == (choice == "auto")


@pytest.mark.engine
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_grammar_of_many_tools_is_not_too_slow_for_the_engine(name: str) -> None:
    own = TOOLS[0]["function"]["parameters"]
    many = [
        {
            "type": "function",
            "function": {
                "name": f"tool_{at}",
                "parameters": {**own, "properties": {**own["properties"], f"value_{at}": {}}},
            },
        }
        for at in range(50)
    ]
    check_grammar(detect_format(TEMPLATES[name]).tool_grammar(many, "required", True).grammar)


@pytest.mark.parametrize("name", [name for name in TEMPLATES if name not in TAGGED])
def test_a_required_call_is_the_only_thing_a_model_can_write(judge: GrammarJudge, name: str) -> None:
    grammar = required(name).grammar
    assert judge.fits(grammar, call_text(name, JSON))
    assert not judge.fits(grammar, call_text(name, BAD))
    assert not judge.fits(grammar, call_text(name, JSON).replace("get_weather", "other"))
    assert not judge.fits(grammar, "Hello")


@pytest.mark.engine
@pytest.mark.parametrize("name", TAGGED)
def test_marked_arguments_follow_their_schema(judge: GrammarJudge, name: str) -> None:
    grammar = required(name).grammar
    assert judge.fits(grammar, TAGGED[name])
    assert not judge.fits(grammar, TAGGED[name].replace("city", "town"))
    assert not judge.fits(grammar, TAGGED[name].replace("get_weather", "other"))


@pytest.mark.engine
@pytest.mark.parametrize("name", BOUNDS)
def test_several_calls_only_where_they_were_asked_for(judge: GrammarJudge, name: str) -> None:
    one = TAGGED[name] if name in TAGGED else call_text(name, JSON)
    start, end = BOUNDS[name]
    call = one[one.index(start) : one.rindex(end)] + end
    two = one.replace(call, call + (", " if name == "mistral-nemo" else "\n") + call)
    assert judge.fits(required(name, parallel=True).grammar, two)
    assert not judge.fits(required(name).grammar, two)


@pytest.mark.engine
def test_a_lazy_grammar_begins_with_its_trigger(judge: GrammarJudge) -> None:
    limits = detect_format(TEMPLATES["harmony"]).tool_grammar(TOOLS, "auto", False)
    assert [(trigger.kind, trigger.value) for trigger in limits.triggers] == [("word", " to=functions.")]
    assert judge.fits(limits.grammar, call_text("harmony", JSON).removeprefix("<|channel|>commentary"))
    hermes = detect_format(TEMPLATES["hermes"]).tool_grammar(TOOLS, "auto", False)
    assert [trigger.value for trigger in hermes.triggers] == ["<tool_call>"]
    assert hermes.preserved == ("<tool_call>", "</tool_call>")


def test_without_tools_nothing_is_forced() -> None:
    assert detect_format(TEMPLATES["hermes"]).tool_grammar([], "required", False).grammar == ""
    assert CONTENT_ONLY.tool_grammar(TOOLS, "required", False).grammar == ""


@pytest.mark.parametrize("name", ["functionary-3.1", "deepseek-v3.1", "harmony", "qwen3-coder"])
def test_a_name_that_would_break_the_marks_is_refused(name: str) -> None:
    tool = {"type": "function", "function": {"name": "a>\n<b"}}
    with pytest.raises(GrammarError, match="characters"):
        detect_format(TEMPLATES[name]).tool_grammar([tool], "required", False)


@pytest.mark.parametrize("name", ["hermes", "qwen3-coder"])
@pytest.mark.parametrize(
    "parameters", [[], "x", 5, {"properties": 5}, {"required": 5}, {"properties": {"a": 5}}, {"type": "odd"}]
)
def test_any_parameters_make_a_grammar_or_a_fault(name: str, parameters: Any) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    with contextlib.suppress(GrammarError, SchemaError):
        check_grammar(detect_format(TEMPLATES[name]).tool_grammar([tool], "required", True).grammar)


@pytest.mark.parametrize(
    ("template", "start", "end"),
    [
        ("a </think> b", "<think>", "</think>"),
        ("[THINK] [/THINK]", "[THINK]", "[/THINK]"),
        ("<|channel|> <|start|>", "<|channel|>analysis<|message|>", "<|end|>"),
        ("<think> only", "", ""),
    ],
)
def test_reasoning_tags_come_from_the_template(template: str, start: str, end: str) -> None:
    form = detect_format(template)
    assert (form.reasoning_start, form.reasoning_end) == (start, end)


def test_every_built_in_template_has_a_format() -> None:
    for name, source in BUILTIN_TEMPLATES.items():
        assert detect_format(source).name, name
