"""The body that an instance gets (08 §9, §3.3, §7.5)."""

from __future__ import annotations

from typing import Any

import pytest

from framework.proxy.request_body import CHAT_BODY, SAMPLING_DEFAULTS, generation_body, whole_body
from framework.values.request import LiveSettings

FIXED = {"model": "smol", "stream": True, "stream_options": {"include_usage": True}}


def built(asked: dict[str, Any], *, slot_context: int = 2048, **live: Any) -> dict[str, Any]:
    """The body for a request under these live settings."""
    return generation_body(
        asked,
        LiveSettings(**live),
        CHAT_BODY,
        model_id="smol",
        slot_context=slot_context,
        max_tokens_fallback=32768,
    )


def test_defaults_fill_what_is_not_asked() -> None:
    assert built({}) == {**SAMPLING_DEFAULTS, **FIXED, "max_tokens": 2048}


def test_the_server_keeps_its_own_defaults_where_the_manifest_says_so() -> None:
    assert built({}, sampling_defaults="server") == {**FIXED, "max_tokens": 2048}


@pytest.mark.parametrize(
    ("asked", "defaults", "temperature"),
    [
        pytest.param({"temperature": 0.1}, {"temperature": 0.2}, 0.1, id="request-first"),
        pytest.param({"temperature": None}, {"temperature": 0.2}, 0.2, id="then-the-model"),
        pytest.param({}, {}, 0.6, id="then-ours"),
        pytest.param({"temperature": 0}, {"temperature": 0.2}, 0, id="zero-is-a-value"),
    ],
)
def test_where_a_sampling_value_comes_from(asked: Any, defaults: Any, temperature: float) -> None:
    assert built(asked, request_defaults=defaults)["temperature"] == temperature


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param({"max_completion_tokens": 5, "max_tokens": 6, "n_predict": 7}, 5, id="newest-name"),
        pytest.param({"max_completion_tokens": None, "max_tokens": 6}, 6, id="null-is-no-value"),
        pytest.param({"n_predict": 7}, 7, id="name-of-the-engine"),
        pytest.param({"max_tokens": 0}, 0, id="zero-is-passed-on"),
        pytest.param({}, 2048, id="slot-context"),
    ],
)
def test_the_limit_of_an_answer(asked: Any, expected: int) -> None:
    body = built(asked)
    assert body["max_tokens"] == expected
    assert not {"max_completion_tokens", "n_predict"} & body.keys()


def test_the_limit_where_the_context_is_unknown() -> None:
    assert built({}, slot_context=0)["max_tokens"] == 32768


def test_either_spelling_of_the_repeat_penalty_is_taken() -> None:
    body = built({"repetition_penalty": 1.3})
    assert body["repeat_penalty"] == 1.3
    assert "repetition_penalty" not in body


def test_a_negative_top_k_becomes_zero() -> None:
    assert built({"top_k": -1})["top_k"] == 0


@pytest.mark.parametrize("value", ["0.7", -5, 999999, [1]], ids=str)
def test_other_values_are_left_to_the_engine(value: Any) -> None:
    assert built({"temperature": value})["temperature"] == value


@pytest.mark.parametrize("stop", [None, "", []], ids=["null", "empty-text", "empty-list"])
def test_an_empty_stop_is_not_sent(stop: Any) -> None:
    assert "stop" not in built({"stop": stop})


def test_fields_we_do_not_know_pass() -> None:
    assert (
        built({"logit_bias": {"1": 2}, "new_field": None, "id_slot": 1}).items()
        >= {
            "logit_bias": {"1": 2},
            "id_slot": 1,
        }.items()
    )


def test_extensions_are_never_forwarded() -> None:
    names = ("tool_loop", "image", "images", "reasoning_output", "promote_reasoning_only")
    switches = ("extract_inline_reasoning", "enable_thinking", "preserve_thinking")
    asked = {**dict.fromkeys(names, "x"), **dict.fromkeys(switches, True), "reasoning_effort": "low"}
    assert not asked.keys() & built(asked).keys()


def test_rules_of_the_model_come_last() -> None:
    body = built(
        {"seed": 1, "repetition_penalty": 2.0, "max_completion_tokens": 9, "top_p": 0.1},
        request_drop=("seed", "repetition_penalty", "max_tokens"),
        request_force={"top_p": 0.5, "repetition_penalty": 1.1},
    )
    assert "seed" not in body
    assert "max_tokens" not in body
    assert (body["top_p"], body["repeat_penalty"]) == (0.5, 1.1)


def test_rules_cannot_switch_the_stream_off() -> None:
    body = built({}, request_force={"stream": False, "model": "x", "reasoning_effort": "high"})
    assert body.items() >= FIXED.items()
    assert "reasoning_effort" not in body


def test_other_stream_options_of_the_client_are_kept() -> None:
    assert built({"stream_options": {"include_usage": False, "x": 1}})["stream_options"] == {
        "include_usage": True,
        "x": 1,
    }


def test_the_request_is_not_changed() -> None:
    asked = {"max_completion_tokens": 5, "top_k": -1, "stop": ""}
    built(asked)
    assert asked == {"max_completion_tokens": 5, "top_k": -1, "stop": ""}


def test_embeddings_are_asked_for_under_the_name_of_the_instance() -> None:
    asked = {"model": "gpt", "input": "x", "dimensions": None, "image": "y"}
    assert whole_body(asked, model_id="smol") == {"model": "smol", "input": "x"}
