"""Replies of many models, with the texts of their chat templates that tell them apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from framework.chat.formats import ReadOptions, ReplyFormat, detect_format

BAR = "\uff5c"
DEEPSEEK = {
    name: f"<{BAR}{name.replace(' ', '▁')}{BAR}>"
    for name in ("tool calls begin", "tool call begin", "tool sep", "tool call end", "tool calls end")
}
BEGINS, BEGIN, SEP, END, ENDS = DEEPSEEK.values()
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "t": {"type": "string"}},
            },
        },
    }
    for name in ("f", "g")
]
F1 = ("f", '{"a": 1}')
G0 = ("g", "{}")


@dataclass(frozen=True)
class Sample:
    """A reply and what it says."""

    template: str
    text: str
    format: str
    content: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    starts_in_reasoning: bool = False

    @property
    def form(self) -> ReplyFormat:
        """Its format."""
        return detect_format(self.template)

    @property
    def options(self) -> ReadOptions:
        """How it is read."""
        return ReadOptions(parse_tools=True, starts_in_reasoning=self.starts_in_reasoning, tools=tuple(TOOLS))


SAMPLES: dict[str, Sample] = {
    "plain": Sample("no functions", " Hello <b>\n", "Content-only", content=" Hello <b>\n"),
    "hermes": Sample(
        "tools <tool_call> </think>",
        'Let me see.\n\n<tool_call>\n{"name": "f", "arguments": {"a": "x}\\"<tool_call>", "b": [1, {}]}}\n'
        '</tool_call>\n<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>\n',
        "Hermes 2 Pro",
        content="Let me see.",
        calls=(("f", '{"a": "x}\\"<tool_call>", "b": [1, {}]}'), G0),
    ),
    "hermes-no-calls": Sample(
        "tools <tool_call> </think>",
        "<think>\nhmm <tool_call>{\n</think>\n\nHi  <tool_call> is a mark, "
        '<tool_call>{"name": 3}</tool_call> no call ',
        "Hermes 2 Pro",
        content='Hi  <tool_call> is a mark, <tool_call>{"name": 3}</tool_call> no call ',
        reasoning="hmm <tool_call>{\n",
    ),
    "cut-in-arguments": Sample(
        "tools <tool_call>",
        '<tool_call>{"name": "f", "arguments": {"a": "b',
        "Hermes 2 Pro",
        calls=(("f", '{"a": "b'),),
    ),
    "cut-in-header": Sample(
        "tools <tool_call>",
        'x <tool_call>{"name": "f", "argum',
        "Hermes 2 Pro",
        content='x <tool_call>{"name": "f", "argum',
    ),
    "arguments-as-text": Sample(
        "tools <tool_call>",
        '<tool_call>{"name": "f", "arguments": "{\\"a\\": 1}"}</tool_call>',
        "Hermes 2 Pro",
        calls=(F1,),
    ),
    "reasoning-without-end": Sample(
        "</think>", "<think>\nnever ends", "Content-only", reasoning="never ends"
    ),
    "open-reasoning": Sample(
        "</think>", "so\n</think>\n\nyes", "Content-only", "yes", "so\n", starts_in_reasoning=True
    ),
    "llama": Sample(
        "tools <|python_tag|>", '{"name": "f", "parameters": {"a": 1}}', "Llama 3.x", calls=(F1,)
    ),
    "llama-tag": Sample(
        "tools <|python_tag|>",
        'ok <|python_tag|>{"type": "function", "name": "f", "parameters": {"a": 1}}',
        "Llama 3.x",
        content="ok",
        calls=(F1,),
    ),
    "json-answer": Sample(
        "tools <|python_tag|>",
        '{"name": "Bob", "parameters": {}}',
        "Llama 3.x",
        '{"name": "Bob", "parameters": {}}',
    ),
    "generic": Sample("tools", '```json\n{"name": "f", "arguments": {"a": 1}}\n```', "Generic", calls=(F1,)),
    "mistral-nemo": Sample(
        "tools [TOOL_CALLS]",
        '[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}, "id": "123456789"}, '
        '{"name": "g", "arguments": {}}]',
        "Mistral Nemo",
        calls=(F1, G0),
    ),
    "mistral": Sample(
        "tools [TOOL_CALLS] [ARGS] [/THINK]",
        '[THINK]abc[/THINK]hi[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[CALL_ID]x1[ARGS]{}',
        "Mistral",
        "hi",
        "abc",
        (F1, G0),
    ),
    "deepseek-r1": Sample(
        f"{BEGINS} ```json </think>",
        f"<think>x</think>ok{BEGINS}{BEGIN}function{SEP}f\n```json\n{F1[1]}\n```{END}\n"
        f"{BEGIN}function{SEP}g\n```json\n{{}}\n```{END}{ENDS}",
        "DeepSeek R1",
        "ok",
        "x",
        (F1, G0),
    ),
    "deepseek-v3.1": Sample(
        BEGINS, f"ok{BEGINS}{BEGIN}f{SEP}{F1[1]}{END}{ENDS}", "DeepSeek V3.1", "ok", calls=(F1,)
    ),
    "command-r7b": Sample(
        "<|START_ACTION|> <|END_THINKING|>",
        "<|START_THINKING|>plan<|END_THINKING|><|START_ACTION|>"
        '[\n    {"tool_call_id": "0", "tool_name": "f", "parameters": {"a": 1}},\n '
        '{"tool_call_id": "1", "tool_name": "g", "parameters": {}}\n]<|END_ACTION|>',
        "Command R7B",
        reasoning="plan",
        calls=(F1, G0),
    ),
    "command-r7b-text": Sample(
        "<|START_ACTION|> <|END_THINKING|>",
        "<|START_RESPONSE|>Hello\n<|END_RESPONSE|>",
        "Command R7B",
        content="Hello\n",
    ),
    "harmony-call": Sample(
        "<|start|> <|channel|>",
        "<|channel|>analysis<|message|>think<|end|><|start|>assistant<|channel|>commentary<|message|>one<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
        '{"a": 1}<|call|>',
        "GPT-OSS",
        "one",
        "think",
        (F1,),
    ),
    "harmony-text": Sample(
        "<|start|> <|channel|>",
        "<|channel|>final<|message|>Hello <b> |>\n<|return|>",
        "GPT-OSS",
        content="Hello <b> |>\n",
    ),
    "harmony-recipient-first": Sample(
        "<|start|> <|channel|>",
        ' to=functions.f<|channel|>commentary json<|message|>{"a": 1} <|call|>',
        "GPT-OSS",
        calls=(F1,),
    ),
    "harmony-nonsense": Sample(
        "<|start|> <|channel|>",
        "a plain <|channel|> text <|start|>assistant",
        "GPT-OSS",
        content="a plain <|channel|> text <|start|>assistant",
    ),
    "functionary-3.2": Sample(
        ">>>all", 'all\nHi there\n>>>f\n{"a": 1}\n>>>g\n{}', "Functionary v3.2", "Hi there", calls=(F1, G0)
    ),
    "functionary-3.2-nonsense": Sample(
        ">>>all", "Hi >>> there >>>x", "Functionary v3.2", content="Hi >>> there >>>x"
    ),
    "functionary-3.1": Sample(
        "<function=",
        'x <function=f>{"a": 1}</function>\n<function=g>{}</function>',
        "Functionary v3.1 Llama 3.1",
        "x",
        calls=(F1, G0),
    ),
    "kimi": Sample(
        "<|tool_calls_section_begin|>",
        "hi<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
        '{"a": 1}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}'
        "<|tool_call_end|><|tool_calls_section_end|>",
        "Kimi K2",
        "hi",
        calls=(F1, G0),
    ),
    "minimax": Sample(
        "<minimax:tool_call></think>",
        'ok</think>\n\nno<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">1</parameter>\n'
        '<parameter name="t">x "y"\nz</parameter>\n</invoke>\n</minimax:tool_call>',
        "MiniMax M2",
        "no",
        "ok",
        (("f", '{"a": 1, "t": "x \\"y\\"\\nz"}'),),
        starts_in_reasoning=True,
    ),
    "qwen3-coder": Sample(
        "<tool_call><function=<parameter=",
        'Sure.\n<tool_call>\n<function=f>\n<parameter=t>\nline "1"\n\nline 2\n</parameter>\n<parameter=z>\n'
        '{"z": [1, 2]}\n</parameter>\n<parameter=y>\nword\n</parameter>\n</function>\n</tool_call>',
        "Qwen3 Coder",
        "Sure.",
        calls=(("f", '{"t": "line \\"1\\"\\n\\nline 2", "z": {"z": [1, 2]}, "y": "word"}'),),
    ),
    "qwen3-coder-cut": Sample(
        "<tool_call><function=<parameter=",
        "<tool_call>\n<function=f>\n<parameter=t>\nline\n\nli",
        "Qwen3 Coder",
        calls=(("f", '{"t": "line\\n\\nli'),),
    ),
    "glm": Sample(
        "<arg_key></think>",
        "<think>x</think>\n<tool_call>f\n<arg_key>t</arg_key>\n<arg_value>abc</arg_value>\n"
        "<arg_key>a</arg_key>\n<arg_value>5</arg_value>\n</tool_call>\n<tool_call>g\n</tool_call>",
        "GLM 4.5",
        reasoning="x",
        calls=(("f", '{"t": "abc", "a": 5}'), G0),
    ),
    "mixed-up-tags": Sample(
        "tools <tool_call>",
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"
        '<tool_call>g</tool_call><tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>',
        "Hermes 2 Pro",
        calls=(F1, G0, F1),
    ),
    "seed": Sample(
        "<seed:tool_call></seed:think>",
        "<seed:think>a</seed:think><seed:tool_call>\n<function=f>\n<parameter=t>abc</parameter>\n"
        "</function>\n</seed:tool_call>",
        "Seed-OSS",
        reasoning="a",
        calls=(("f", '{"t": "abc"}'),),
    ),
    "firefunction": Sample(
        "tools functools[", ' functools[{"name": "f", "arguments": {"a": 1}}]', "FireFunction v2", calls=(F1,)
    ),
    "granite": Sample(
        "tools <|tool_call|>", '<|tool_call|>[{"name": "f", "arguments": {"a": 1}}]', "Granite", calls=(F1,)
    ),
}
