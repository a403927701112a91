"""What a chat template can do (02 §6.1-6.5)."""

from __future__ import annotations

import pytest

from framework.models.template_caps import TOOL_FRAGMENTS, template_capabilities
from framework.values.reasoning import LADDER, TemplateCapabilities

EFFORT = "{{ reasoning_effort }}"
SWITCH = "{% if enable_thinking %}"


def quoted(*levels: str) -> str:
    return " ".join(f"'{level}'" for level in levels)


@pytest.mark.parametrize("template", [None, ""], ids=["none", "empty"])
def test_without_a_template_nothing_is_supported(template: str | None) -> None:
    assert template_capabilities(template, "deepseek") == TemplateCapabilities()


@pytest.mark.parametrize(
    ("template", "model_id", "style", "levels"),
    [
        pytest.param(
            EFFORT + SWITCH + quoted("max", "high"), "m", "enable_thinking_effort", ("high", "max"), id="both"
        ),
        pytest.param(EFFORT + SWITCH, "m", "enable_thinking", (), id="both, no level"),
        pytest.param(SWITCH + quoted("low"), "m", "enable_thinking", (), id="switch"),
        pytest.param(EFFORT, "m", "reasoning_effort", (), id="effort"),
        pytest.param(EFFORT + quoted("none"), "m", "reasoning_effort", (), id="a quoted word is no level"),
        pytest.param(EFFORT + quoted(*LADDER), "m", "reasoning_effort", LADDER, id="all levels"),
        pytest.param(
            EFFORT + quoted("low", "high"), "m", "reasoning_effort", ("low", "high"), id="two levels"
        ),
        pytest.param("{{ thinking }}", "org/DeepSeek-V3.1", "enable_thinking", (), id="deepseek"),
    ],
)
def test_switches(template: str, model_id: str, style: str, levels: tuple[str, ...]) -> None:
    found = template_capabilities(template, model_id)
    assert (found.supports_reasoning, found.reasoning_always_on) == (True, False)
    assert (found.reasoning_style, found.effort_levels) == (style, levels)


@pytest.mark.parametrize(
    ("model_id", "levels"),
    [
        ("org/DeepSeek-V4-Flash", ("high", "max")),
        ("deepseek4", ("high", "max")),
        ("DeepSeek_V4.Pro", ("high", "max")),
        ("deepseek-v40", ("max",)),
        ("deepseek-v4/other", ("max",)),
    ],
)
def test_deepseek_4_takes_a_level_that_its_template_does_not_name(
    model_id: str, levels: tuple[str, ...]
) -> None:
    assert template_capabilities(EFFORT + SWITCH + '"max"', model_id).effort_levels == levels


@pytest.mark.parametrize(
    ("template", "always"),
    [("<think></think>", True), ("reasoning_content", True), ("<think>", False), ("thinking", False)],
)
def test_reasoning_without_a_switch(template: str, always: bool) -> None:
    found = template_capabilities(template, "m")
    assert (found.supports_reasoning, found.reasoning_always_on) == (always, always)
    assert not found.switchable


def test_a_switch_outranks_what_looks_like_always() -> None:
    assert not template_capabilities(SWITCH + "<think></think>").reasoning_always_on


def test_keeping_thoughts_is_independent_of_reasoning() -> None:
    found = template_capabilities("{{ preserve_thinking }}")
    assert (found.supports_preserve_thinking, found.supports_reasoning) == (True, False)


def test_there_are_fifteen_signs_of_tools() -> None:
    assert len(set(TOOL_FRAGMENTS)) == 15


@pytest.mark.parametrize("fragment", TOOL_FRAGMENTS)
def test_tools(fragment: str) -> None:
    assert template_capabilities(f"x {fragment} y").supports_tools


@pytest.mark.parametrize("template", ["{% if  tools %}", "tools", "role == tool"])
def test_what_is_no_sign_of_tools(template: str) -> None:
    assert not template_capabilities(template).supports_tools


def test_a_template_is_never_run() -> None:
    assert template_capabilities("{% for i in range(10**9) %}{{ cycler.__init__ }}{% endfor %}") is not None
