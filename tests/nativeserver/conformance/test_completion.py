"""`/completion` and `/v1/completions`, whole and streamed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nativeserver.conformance.comparing import assert_same
from tests.nativeserver.conformance.requests import PERSON, STORY, YES_NO, greedy
from tests.support.engine_pair import EnginePair

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

# See docs/native.md. Biases are compared where they are asked for, by what is generated.
APART_FROM = [
    f"{place}{name}"
    for place in ("", "[].")
    for name in ("id_slot", "generation_settings.reasoning_format", "generation_settings.logit_bias")
]
COMPLETIONS: dict[str, dict[str, Any]] = {
    "plain": {"n_predict": 24},
    "to-the-end": {"n_predict": 200, "prompt": "The capital of France is"},
    "one-token": {"n_predict": 1},
    "stop-string": {"n_predict": 60, "stop": [" and", "mill"]},
    "stop-string-at-the-limit": {"n_predict": 3, "stop": [" a very long string that does not come"]},
    "grammar": {"n_predict": 8, "grammar": YES_NO},
    "schema": {"n_predict": 60, "json_schema": PERSON},
    "penalties": {"n_predict": 24, "repeat_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": 0.5},
    "dry": {"n_predict": 40, "dry_multiplier": 0.8, "dry_sequence_breakers": ["\n", "."]},
    "bias": {"n_predict": 12, "logit_bias": [[28, False], [30, -5.0], [" water", 4]]},
    "bias-as-object": {"n_predict": 12, "logit_bias": {"28": -100, " water": 4}},
    "ignore-eos": {"n_predict": 40, "ignore_eos": True},
    "samplers": {"n_predict": 12, "samplers": ["top_k", "temperature"], "top_k": 3},
    "samplers-in-short": {"n_predict": 12, "samplers": "kt", "top_k": 3},
    "drawn": {"n_predict": 24, "temperature": 0.9, "seed": 42},
    "mirostat": {"n_predict": 24, "temperature": 0.9, "seed": 42, "mirostat": 2},
    "xtc": {"n_predict": 24, "temperature": 0.9, "seed": 7, "xtc_probability": 0.5, "xtc_threshold": 0.1},
    "tokens": {"n_predict": 8, "prompt": [5, 9, 1000, 42]},
    "mixed": {"n_predict": 8, "prompt": ["Once upon", 253, " time"]},
    "several-prompts": {"n_predict": 8, "prompt": ["One, two,", "Red, green,"]},
    "several-choices": {"n_predict": 8, "n": 2},
    "probabilities": {"n_predict": 6, "n_probs": 4},
    "drawn-probabilities": {"n_predict": 6, "n_probs": 4, "temperature": 0.8, "top_k": 3, "seed": 5},
    "probabilities-after-sampling": {
        "n_predict": 6,
        "n_probs": 4,
        "post_sampling_probs": True,
        "temperature": 0.8,
        "top_k": 3,
        "seed": 5,
    },
    "probabilities-after-greedy-sampling": {"n_predict": 6, "n_probs": 4, "post_sampling_probs": True},
    "chosen-fields": {"n_predict": 4, "response_fields": ["content", "timings/predicted_n", "nothing/here"]},
    "indented": {"n_predict": 24, "prompt": "def f():\n    if x:\n", "n_indent": 4},
    "lines": {"n_predict": 40, "prompt": "1\n2\n3\n"},
}


@pytest.mark.parametrize("name", COMPLETIONS)
def test_a_completion_is_the_same(pair: EnginePair, name: str) -> None:
    real, native = pair.post(
        "/completion", greedy(**{"prompt": STORY, "return_tokens": True, **COMPLETIONS[name]})
    )
    # The texts of grammars made of schemas differ, not what they allow.
    assert_same(native, real, apart_from=[*APART_FROM, "generation_settings.grammar"])


STREAMED: dict[str, dict[str, Any]] = {
    "plain": {},
    "tokens": {"return_tokens": True},
    "probabilities": {"n_probs": 3, "n_predict": 6},
    "stop-string": {"stop": [" river", "xyz"], "n_predict": 60},
    "timings": {"timings_per_token": True, "n_predict": 6},
    "several-choices": {"n": 2, "n_predict": 6},
}


@pytest.mark.parametrize("name", STREAMED)
def test_a_streamed_completion_is_the_same(pair: EnginePair, name: str) -> None:
    body = greedy(**{"prompt": STORY, "n_predict": 20, **STREAMED[name]})
    real, native, is_done = pair.stream("/completion", body)
    assert is_done == (False, False)
    assert_same(by_choice(native), by_choice(real), apart_from=APART_FROM)


def by_choice(events: list[Any]) -> list[Any]:
    """Events of several choices come as they are made; those of one keep their order."""
    return sorted(events, key=lambda event: event.get("index", 0))


OAI: dict[str, dict[str, Any]] = {
    "plain": {},
    "to-the-end": {"max_tokens": 200, "prompt": "The capital of France is"},
    "stop-string": {"stop": "mill", "max_tokens": 60},
    "logprobs": {"logprobs": 3, "max_tokens": 6},
    "several-prompts": {"prompt": ["One, two,", "Red, green,"], "max_tokens": 6},
    "several-choices": {"n": 2, "max_tokens": 6},
}


@pytest.mark.parametrize("name", OAI)
def test_a_text_completion_is_the_same(pair: EnginePair, name: str) -> None:
    body = greedy(**{"prompt": STORY, "max_tokens": 16, **OAI[name]})
    real, native = pair.post("/v1/completions", body)
    # The real one tells the usage of the first of several answers.
    assert_same(native, real, apart_from=["usage"] if name.startswith("several") else [])


def test_a_streamed_text_completion_is_the_same(pair: EnginePair) -> None:
    real, native, is_done = pair.stream("/v1/completions", greedy(prompt=STORY, max_tokens=16))
    assert is_done == (True, True)
    assert_same(native, real)


def test_a_second_request_uses_as_much_of_the_first(pair: EnginePair) -> None:
    begun = greedy(prompt=STORY, n_predict=12, cache_prompt=True, id_slot=0)
    for body in (begun, begun, {**begun, "prompt": STORY + " went to the market"}):
        real, native = pair.post("/completion", body)
        assert_same(native, real, apart_from=APART_FROM)
