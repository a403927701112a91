"""The table of formats, and the texts in chat templates that tell them apart. Called by chat.formats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from framework.chat.formats.base import CallSyntax, ReplyFormat
from framework.chat.formats.functionary import FunctionaryFormat
from framework.chat.formats.harmony import HarmonyFormat
from framework.chat.formats.json_calls import JsonCalls
from framework.chat.formats.named_calls import NamedCalls
from framework.chat.formats.tagged_calls import FUNCTION_IN_TAG, JSON_IN_TAG, PAIRS_IN_TAG, TAG, TaggedCalls
from framework.chat.formats.xml_calls import XmlCalls
from framework.chat.reasoning import reasoning_tags

CONTENT_ONLY = ReplyFormat("Content-only")
MISTRAL_ID_LENGTH = 9
"""Mistral's templates refuse ids of another length."""
# DeepSeek's marks hold fullwidth bars.
_DEEPSEEK_MARKS = tuple(
    f"<\uff5c{words}\uff5c>"
    for words in ("tool▁calls▁begin", "tool▁call▁begin", "tool▁sep", "tool▁call▁end", "tool▁calls▁end")
)
_KIMI_MARKS = (
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
)


@dataclass(frozen=True)
class _Row:
    """A format, and what its templates hold."""

    markers: tuple[str, ...]
    format: ReplyFormat


def _json(name: str, marker: str, closer: str = "", **details: object) -> _Row:
    calls: CallSyntax = JsonCalls(marker, closer, **details)  # type: ignore[arg-type]
    return _Row((marker,), ReplyFormat(name, calls=calls))


def _deepseek(word: str, between: str, after: str) -> NamedCalls:
    section, before, separator, end, section_end = _DEEPSEEK_MARKS
    return NamedCalls(
        before=f"{before}{word}{separator}" if word else before,
        before_pattern=rf"{before}\s*(?:function{separator})?",
        between=between,
        between_pattern=rf"(?:{separator})?\s*(?:```(?:json)?\s*)?",
        after=f"{after}{end}",
        section=section,
        section_end=section_end,
        special=_DEEPSEEK_MARKS,
    )


def _tagged(section: str, before: str, between: str, after: str, **details: object) -> XmlCalls:
    closer = f"</{section[1:]}" if section else ""
    return XmlCalls(before, between, after=after, section=section, section_end=closer, **details)  # type: ignore[arg-type]


_PARAMETERS = {"key": "<parameter=", "key_end": ">", "value_end": "</parameter>", "pads_values": True}
_INVOKE = {"key": '<parameter name="', "key_end": '">', "value_end": "</parameter>"}
_MISTRAL = NamedCalls(
    before="[TOOL_CALLS]",
    between="[ARGS]",
    between_pattern=r"(?:\[CALL_ID\](?P<id>[^\[\]]{1,64}))?(?:\[ARGS\])?\s*",
    special=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
)
_KIMI = NamedCalls(
    before=f"{_KIMI_MARKS[1]}functions.",
    before_pattern=r"<\|tool_call_begin\|>\s*(?:functions\.)?",
    between=f":0{_KIMI_MARKS[2]}",
    between_pattern=r"(?::\d{1,9})?\s*<\|tool_call_argument_begin\|>\s*",
    between_rule=f'":" [0-9] [0-9]? "{_KIMI_MARKS[2]}"',
    after=_KIMI_MARKS[3],
    section=_KIMI_MARKS[0],
    section_end=_KIMI_MARKS[4],
    special=_KIMI_MARKS,
)
_COMMAND_R = JsonCalls(
    "<|START_ACTION|>",
    "<|END_ACTION|>",
    is_list=True,
    name_key="tool_name",
    arguments_key="parameters",
    special=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_THINKING|>", "<|END_THINKING|>"),
)
_RESPONSE_MARKS = ("<|START_RESPONSE|>", "<|END_RESPONSE|>")
_LLAMA = JsonCalls("<|python_tag|>", at_start=True, arguments_key="parameters")

# The first row whose markers are all in a template counts: special ones stand before general ones.
_ROWS: tuple[_Row, ...] = (
    _Row(("<|channel|>", "<|start|>"), HarmonyFormat()),
    _Row(
        ("[TOOL_CALLS]", "[ARGS]"),
        ReplyFormat("Mistral", calls=_MISTRAL, call_id_length=MISTRAL_ID_LENGTH),
    ),
    _Row(
        ("[TOOL_CALLS]",),
        ReplyFormat(
            "Mistral Nemo", calls=JsonCalls("[TOOL_CALLS]", is_list=True), call_id_length=MISTRAL_ID_LENGTH
        ),
    ),
    _Row((">>>all",), FunctionaryFormat()),
    _Row((_KIMI_MARKS[0],), ReplyFormat("Kimi K2", calls=_KIMI)),
    _Row(
        (_DEEPSEEK_MARKS[0], "```json"),
        ReplyFormat("DeepSeek R1", calls=_deepseek("function", "\n```json\n", "\n```")),
    ),
    _Row((_DEEPSEEK_MARKS[0],), ReplyFormat("DeepSeek V3.1", calls=_deepseek("", _DEEPSEEK_MARKS[2], ""))),
    _Row(("<|START_ACTION|>",), ReplyFormat("Command R7B", calls=_COMMAND_R, content_marks=_RESPONSE_MARKS)),
    _Row(
        ("<minimax:tool_call>",),
        ReplyFormat(
            "MiniMax M2",
            calls=_tagged("<minimax:tool_call>", '<invoke name="', '">\n', "</invoke>", **_INVOKE),
        ),
    ),
    _Row(
        ("<seed:tool_call>",),
        ReplyFormat(
            "Seed-OSS",
            calls=_tagged(
                "<seed:tool_call>",
                "<function=",
                ">\n",
                "</function>",
                **{**_PARAMETERS, "pads_values": False},
            ),
        ),
    ),
    _Row(("<arg_key>",), ReplyFormat("GLM 4.5", calls=TaggedCalls(PAIRS_IN_TAG))),
    _Row(
        ("<function=", "<parameter="),
        ReplyFormat(
            "Qwen3 Coder",
            calls=TaggedCalls(FUNCTION_IN_TAG),
        ),
    ),
    _Row((TAG,), ReplyFormat("Hermes 2 Pro", calls=TaggedCalls(JSON_IN_TAG))),
    _Row(
        ("<function=",),
        ReplyFormat(
            "Functionary v3.1 Llama 3.1",
            calls=NamedCalls("<function=", ">", "</function>", special=("<|python_tag|>",)),
        ),
    ),
    _json("Nemotron V2", "<TOOLCALL>", "</TOOLCALL>", is_list=True),
    _json("LFM2", "<|tool_call_start|>", "<|tool_call_end|>", is_list=True),
    _json("Granite", "<|tool_call|>", is_list=True),
    _json("FireFunction v2", "functools", is_list=True),
    _Row(("<|python_tag|>",), ReplyFormat("Llama 3.x", calls=_LLAMA)),
)
_GENERIC = ReplyFormat("Generic", calls=JsonCalls(at_start=True))
_TOOL_WORD = "tools"
"""Every template that shows functions to the model reads this variable."""


@lru_cache(maxsize=16)
def detect_format(template_source: str) -> ReplyFormat:
    """The format of the models that a chat template is for."""
    found = next((row.format for row in _ROWS if all(text in template_source for text in row.markers)), None)
    if found is None:
        found = _GENERIC if _TOOL_WORD in template_source else CONTENT_ONLY
    if found.reasoning_end:
        return found
    start, end = reasoning_tags(template_source)
    marks = found.content_marks or (("<response>", "</response>") if "<response>" in template_source else ())
    return replace(found, reasoning_start=start, reasoning_end=end, content_marks=marks)
