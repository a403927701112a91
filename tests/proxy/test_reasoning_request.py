"""Which template arguments a wish about reasoning becomes (08 §10; its vectors are those of 10.9)."""

from __future__ import annotations

from typing import Any

import pytest

from framework.proxy.errors import ProxyError
from framework.proxy.reasoning_request import template_arguments
from framework.proxy.request_body import CHAT_BODY, generation_body
from framework.values.reasoning import LADDER, NO_REASONING, ReasoningFacts, ReasoningStyle
from framework.values.reasoning import TemplateCapabilities as Template
from framework.values.request import LiveSettings
from tests.proxy.families import MESSAGES, RESPONSES
from tests.proxy.world import World


def facts(style: ReasoningStyle, *levels: str, architecture: str | None = None) -> ReasoningFacts:
    template = Template(supports_reasoning=True, reasoning_style=style, effort_levels=levels)
    return ReasoningFacts(template, architecture)


BOTH = facts("enable_thinking_effort", "high", "max")
EFFORT = facts("reasoning_effort")
SPARSE = facts("reasoning_effort", "low", "high", "max")
INKLING = facts("reasoning_effort", *LADDER, architecture="inkling")
SWITCH = facts("enable_thinking")


@pytest.mark.parametrize(
    ("known", "thinking", "effort", "expected"),
    [
        (BOTH, None, None, {}),
        (BOTH, True, "max", {"enable_thinking": True, "reasoning_effort": "max"}),
        (BOTH, None, "max", {"enable_thinking": True, "reasoning_effort": "max"}),
        (BOTH, False, "max", {"enable_thinking": False}),
        (BOTH, True, "low", {"enable_thinking": True}),
        (BOTH, None, "none", {"enable_thinking": False}),
        (BOTH, True, "none", {"enable_thinking": False}),
        (EFFORT, None, "minimal", {"reasoning_effort": "low"}),
        (EFFORT, True, "xhigh", {"reasoning_effort": "high"}),
        (EFFORT, None, "none", {"reasoning_effort": "none"}),
        (EFFORT, False, None, {"reasoning_effort": "low"}),
        (EFFORT, True, None, {"reasoning_effort": "high"}),
        (EFFORT, False, "high", {"reasoning_effort": "high"}),
        (EFFORT, None, "foo", {}),
        (SPARSE, None, "max", {"reasoning_effort": "max"}),
        (SPARSE, None, "xhigh", {"reasoning_effort": "high"}),
        (SPARSE, None, "medium", {"reasoning_effort": "low"}),
        (INKLING, True, "medium", {"reasoning_effort": 0.7}),
        (INKLING, None, "none", {"reasoning_effort": 0.0}),
        (SWITCH, None, "none", {"enable_thinking": False}),
        (SWITCH, None, " High ", {"enable_thinking": True}),
        (SWITCH, False, "high", {"enable_thinking": False}),
        (SWITCH, None, None, {}),
        (NO_REASONING, True, "high", {}),
    ],
)
def test_a_wish_in_the_words_of_the_template(
    known: ReasoningFacts, thinking: bool | None, effort: str | None, expected: dict[str, Any]
) -> None:
    assert template_arguments({"enable_thinking": thinking, "reasoning_effort": effort}, known) == expected
    if effort is not None:
        in_object = {"enable_thinking": thinking, "reasoning": {"effort": effort}}
        assert template_arguments(in_object, known) == expected


def test_what_the_client_gives_the_template_itself_wins() -> None:
    asked = {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": True, "date": "today"}}
    assert template_arguments(asked, SWITCH) == {"enable_thinking": True, "date": "today"}


def test_keeping_thoughts_is_asked_for_where_the_template_can() -> None:
    keeps = ReasoningFacts(Template(supports_preserve_thinking=True))
    assert template_arguments({"preserve_thinking": True}, keeps) == {"preserve_thinking": True}
    assert template_arguments({"preserve_thinking": True}, SWITCH) == {}


@pytest.mark.parametrize(
    "asked",
    [{"reasoning_effort": 3}, {"enable_thinking": "yes"}, {"reasoning": {"effort": []}}],
    ids=str,
)
def test_a_wish_of_another_type_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(ProxyError) as caught:
        template_arguments(asked, SWITCH)
    assert caught.value.code == "invalid_body"


def test_the_manifest_can_wish_too() -> None:
    live = LiveSettings(request_defaults={"reasoning_effort": "none"}, request_drop=("preserve_thinking",))
    given: dict[str, Any] = {"model_id": "m", "slot_context": 9, "max_tokens_fallback": 9}
    body = generation_body({}, live, CHAT_BODY, **given, reasoning=SWITCH)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert "reasoning_effort" not in body


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [], "reasoning_effort": "none"}),
        ("/v1/responses", RESPONSES.request(reasoning={"effort": "none"})),
        ("/v1/messages", MESSAGES.request(thinking={"type": "disabled"})),
        ("/v1/messages", MESSAGES.request(output_config={"effort": "none"})),
    ],
    ids=["chat", "responses", "thinking", "effort"],
)
async def test_every_family_reaches_the_template(world: World, path: str, body: dict[str, Any]) -> None:
    world.fleet.reasoning = SWITCH
    await world.ask(path, {**body, "model": "smol"})
    assert world.engine.calls[0].body["chat_template_kwargs"] == {"enable_thinking": False}
