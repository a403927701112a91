"""What a chat template can do: reasoning and its switches, keeping thoughts, tools (02 §6.1-6.5). Pure.

A template is never run here, only searched: it comes from a stranger's file.
"""

from __future__ import annotations

import itertools
import re

from framework.values.reasoning import LADDER, ReasoningStyle, TemplateCapabilities

ID_PARTS = re.compile(r"[-_.]")
TOOL_FRAGMENTS = (
    *("{% if tools %}", "{%- if tools %}", "{% if tools -%}", "{%- if tools -%}"),
    *("{% if tools is defined", "{%- if tools is defined"),
    *('"role" == "tool"', "'role' == 'tool'"),
    *('message.role == "tool"', "message.role == 'tool'"),
    *("message['role'] == 'tool'", 'message["role"] == "tool"'),
    *("message['tool_calls']", 'message["tool_calls"]'),
    "tool_calls is defined",
)


def template_capabilities(template: str | None, model_id: str = "") -> TemplateCapabilities:
    """Capabilities of the template that is in force: the override where one is set."""
    if not template:
        return TemplateCapabilities()
    style, levels = _reasoning(template, model_id.lower())
    always_on = style is None and _always_reasons(template)
    return TemplateCapabilities(
        supports_reasoning=style is not None or always_on,
        reasoning_style=style or "enable_thinking",
        reasoning_always_on=always_on,
        effort_levels=levels,
        supports_preserve_thinking="preserve_thinking" in template,
        supports_tools=any(fragment in template for fragment in TOOL_FRAGMENTS),
    )


def _reasoning(template: str, model_id: str) -> tuple[ReasoningStyle | None, tuple[str, ...]]:
    """The switch of a template and its levels, by the first rule of 02 §6.3 that fits."""
    effort, thinking = "reasoning_effort" in template, "enable_thinking" in template
    levels = tuple(level for level in LADDER if f'"{level}"' in template or f"'{level}'" in template)
    if effort and thinking and levels:
        return "enable_thinking_effort", _with_high(levels) if _is_deepseek_4(model_id) else levels
    if thinking:
        return "enable_thinking", ()
    if effort:
        # A quoted "none" that is there for something else must not become a level.
        return "reasoning_effort", levels if {"low", "high"} <= set(levels) else ()
    if "thinking" in template and "deepseek" in model_id:
        return "enable_thinking", ()
    return None, ()


def _always_reasons(template: str) -> bool:
    return ("<think>" in template and "</think>" in template) or "reasoning_content" in template


def _with_high(levels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(level for level in LADDER if level in levels or level == "high")


def _is_deepseek_4(model_id: str) -> bool:
    """It takes `high`, which its template does not test for. Only whole parts count: not deepseek-v40."""
    parts = ID_PARTS.split(model_id.rpartition("/")[2])
    return "deepseek4" in parts or ("deepseek", "v4") in itertools.pairwise(parts)
