"""Wishes about thinking in the words of a template (02 §6.6-6.8)."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from framework.manifest.schema_model import Reasoning
from framework.models.gguf_fields import GgufHeader
from framework.models.thinking import (
    launch_arguments,
    launch_reasoning,
    numeric_effort,
    request_arguments,
)
from framework.values.reasoning import LADDER, ReasoningStyle, TemplateCapabilities


def caps(style: ReasoningStyle, *levels: str, **more: bool) -> TemplateCapabilities:
    return TemplateCapabilities(supports_reasoning=True, reasoning_style=style, effort_levels=levels, **more)


BOTH = caps("enable_thinking_effort", "high", "max")
EFFORT = caps("reasoning_effort")
ALL = caps("reasoning_effort", *LADDER)
SWITCH = caps("enable_thinking")
ALWAYS = caps("enable_thinking", reasoning_always_on=True)


@pytest.mark.parametrize(
    ("thinking", "effort", "expected"),
    [
        (None, None, {}),
        (True, "max", {"enable_thinking": True, "reasoning_effort": "max"}),
        (None, "max", {"enable_thinking": True, "reasoning_effort": "max"}),
        (False, "max", {"enable_thinking": False}),
        (True, "low", {"enable_thinking": True}),
        (None, "low", {}),
        (None, "none", {"enable_thinking": False}),
        (True, "none", {"enable_thinking": False}),
    ],
)
def test_switch_and_effort(thinking: bool | None, effort: str | None, expected: dict[str, Any]) -> None:
    assert request_arguments(BOTH, enable_thinking=thinking, effort=effort) == expected


@pytest.mark.parametrize(
    ("model", "thinking", "effort", "level"),
    [
        (EFFORT, None, "minimal", "low"),
        (EFFORT, True, "xhigh", "high"),
        (EFFORT, None, "xhigh", "high"),
        (EFFORT, False, None, "low"),
        (EFFORT, True, None, "high"),
        (EFFORT, None, "none", "none"),
        (EFFORT, False, "high", "high"),
        (EFFORT, True, "nonsense", "high"),
        (EFFORT, None, "nonsense", None),
        (EFFORT, None, None, None),
        (ALL, None, "xhigh", "xhigh"),
        (ALL, None, "minimal", "minimal"),
        (caps("reasoning_effort", "none", "low", "high"), None, "minimal", "low"),
    ],
)
def test_effort(
    model: TemplateCapabilities, thinking: bool | None, effort: str | None, level: str | None
) -> None:
    expected = {} if level is None else {"reasoning_effort": level}
    assert request_arguments(model, enable_thinking=thinking, effort=effort) == expected


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [(None, {}), (True, {"enable_thinking": True}), (False, {"enable_thinking": False})],
)
def test_a_plain_switch_ignores_effort(thinking: bool | None, expected: dict[str, Any]) -> None:
    assert request_arguments(SWITCH, enable_thinking=thinking, effort="high") == expected


def test_an_effort_as_a_number() -> None:
    found = request_arguments(EFFORT, enable_thinking=True, effort="medium", architecture="inkling")
    assert found == {"reasoning_effort": 0.7}


@pytest.mark.parametrize(
    ("effort", "architecture", "expected"),
    [
        ("none", "inkling", 0.0),
        (" MAX ", "inkling", 0.99),
        ("odd", "inkling", "odd"),
        ("high", "llama", "high"),
        ("high", None, "high"),
    ],
)
def test_numeric_effort(effort: str, architecture: str | None, expected: str | float) -> None:
    assert numeric_effort(effort, architecture) == expected


def test_keeping_thoughts_goes_out_only_where_supported_and_asked() -> None:
    keeps = caps("enable_thinking", supports_preserve_thinking=True)
    assert request_arguments(keeps, preserve=True) == {"preserve_thinking": True}
    assert request_arguments(keeps) == {}
    assert request_arguments(SWITCH, preserve=True) == {}


@pytest.mark.parametrize(
    "model",
    [TemplateCapabilities(), caps("enable_thinking", reasoning_always_on=True)],
    ids=["none", "always on"],
)
def test_where_there_is_no_switch_nothing_goes_out(model: TemplateCapabilities) -> None:
    assert request_arguments(model, enable_thinking=True, effort="high") == {}
    assert launch_arguments(model, "m") == {}


@pytest.mark.parametrize(
    ("model", "model_id", "expected"),
    [
        (SWITCH, "Qwen3-8B", {"enable_thinking": True}),
        (BOTH, "Qwen3-8B", {"enable_thinking": True}),
        (EFFORT, "gpt-oss-20b", {"reasoning_effort": "high"}),
        (SWITCH, "org/Qwen3.5-4B-GGUF", {"enable_thinking": False}),
        (SWITCH, "Qwen3.6-9B", {"enable_thinking": True}),
        (SWITCH, "Qwen3.5", {"enable_thinking": True}),
        (EFFORT, "Qwen3.5-0.8B", {"reasoning_effort": "low"}),
    ],
)
def test_defaults_at_launch(model: TemplateCapabilities, model_id: str, expected: dict[str, Any]) -> None:
    assert launch_arguments(model, model_id) == expected


def test_defaults_at_launch_turn_kept_thoughts_off_and_use_the_size_label() -> None:
    keeps = caps("enable_thinking", supports_preserve_thinking=True)
    assert launch_arguments(keeps, "qwen3.5", size_label="4B") == {
        "enable_thinking": False,
        "preserve_thinking": False,
    }
    assert launch_arguments(EFFORT, "inkling", architecture="inkling") == {"reasoning_effort": 0.9}


@pytest.mark.parametrize(
    ("wish", "template", "expected"),
    [
        pytest.param("auto", SWITCH, {"enable_thinking": True}, id="auto"),
        pytest.param("off", SWITCH, {"enable_thinking": False}, id="off"),
        pytest.param("none", SWITCH, {"enable_thinking": False}, id="none is off"),
        pytest.param("high", SWITCH, {"enable_thinking": True}, id="a level where there is only a switch"),
        pytest.param("none", EFFORT, {"reasoning_effort": "none"}, id="none by effort"),
        pytest.param("off", EFFORT, {"reasoning_effort": "low"}, id="off by effort"),
        pytest.param("medium", EFFORT, {"reasoning_effort": "medium"}, id="a level"),
        pytest.param("max", EFFORT, {"reasoning_effort": "high"}, id="the nearest level"),
        pytest.param("max", BOTH, {"enable_thinking": True, "reasoning_effort": "max"}, id="both"),
        pytest.param("off", BOTH, {"enable_thinking": False}, id="off with levels"),
        pytest.param("low", BOTH, {"enable_thinking": True}, id="a level that is not there"),
        pytest.param("on", TemplateCapabilities(), {}, id="no reasoning"),
        pytest.param("off", ALWAYS, {}, id="no switch"),
    ],
)
def test_what_the_manifest_says(wish: str, template: TemplateCapabilities, expected: dict[str, Any]) -> None:
    assert launch_reasoning(wish, template, "m-8b", GgufHeader())[0] == expected


@pytest.mark.parametrize(
    ("wish", "template", "words"),
    [
        ("auto", TemplateCapabilities(), ""),
        ("off", TemplateCapabilities(), ""),
        ("on", TemplateCapabilities(), "knows no reasoning"),
        ("high", TemplateCapabilities(), "knows no reasoning"),
        ("on", ALWAYS, ""),
        ("off", ALWAYS, "no switch"),
        ("on", SWITCH, ""),
        ("high", SWITCH, "only knows on and off"),
        ("max", BOTH, ""),
        ("low", BOTH, "only knows high, max"),
        ("max", EFFORT, ""),
    ],
)
def test_a_wish_that_has_no_effect_is_told(wish: str, template: TemplateCapabilities, words: str) -> None:
    notes = launch_reasoning(wish, template, "m-8b", GgufHeader())[1]
    assert [words in note.message for note in notes] == [True] * bool(words)


def test_the_manifest_knows_every_level() -> None:
    assert set(get_args(Reasoning)) == {"auto", "on", "off", *LADDER}
