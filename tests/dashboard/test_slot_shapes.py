"""The slots of a page, from what engines of three eras answer to `/slots` (case MD-07)."""

from __future__ import annotations

from typing import Any

import pytest

from framework.runtime.sampler import parse_slot
from framework.values.instance import State
from tests.dashboard import samples
from tests.dashboard.html import Element, parse
from tests.dashboard.renders import OPERATOR, model_page, templates

# Before the summer of 2024: a state by number, one object for what follows.
BY_NUMBER = [
    {
        "id": 0, "id_task": 7, "n_ctx": 2048, "n_predict": -1, "model": "m.gguf", "state": 1, "stream": True,
        "prompt": "Hello", "temperature": 0.8, "grammar": "", "samplers": ["top_k"],
        "next_token": {"has_next_token": True, "n_remain": -1, "n_decoded": 12, "stopped_eos": False},
    },
    {"id": 1, "id_task": -1, "n_ctx": 2048, "state": 0, "prompt": None, "next_token": {"n_decoded": 0}},
]  # fmt: skip
# b10068: whether it works, and a list of what follows.
BY_WORD = [
    {
        "id": 0, "id_task": 7, "n_ctx": 2048, "is_processing": True, "speculative": False,
        "n_prompt_tokens": 42, "n_prompt_tokens_processed": 30, "n_prompt_tokens_cache": 0,
        "params": {"n_predict": -1}, "next_token": [{"has_next_token": True, "n_decoded": 12}],
    },
    {"id": 1, "n_ctx": 2048, "is_processing": False, "speculative": False, "n_prompt_tokens": 0},
]  # fmt: skip
# A build that renamed and dropped what it liked.
RENAMED = [
    {"id": 0, "is_processing": True, "context": {"size": 2048}, "next_token": [{"n_decoded": 12, "new": {}}]},
    {"id": 1, "is_processing": False, "n_ctx": "many", "next_token": "none"},
]


def drawn(answer: list[dict[str, Any]]) -> Element:
    instance = samples.instance(samples.request("A"), slots=tuple(map(parse_slot, answer)))
    page = model_page(samples.model("A", instances=(instance,)))
    return parse(templates().page("model.html", page, OPERATOR)).one("main")


@pytest.mark.parametrize(
    ("answer", "used", "size"),
    [
        pytest.param(BY_NUMBER, "12", " of 2,048 tokens", id="state-by-number"),
        pytest.param(BY_WORD, "42", " of 2,048 tokens", id="is-processing"),
        pytest.param(RENAMED, "12", " tokens", id="no-context"),
    ],
)
def test_every_slot_of_every_build_has_its_place(answer: list[dict[str, Any]], used: str, size: str) -> None:
    busy, idle = drawn(answer).one("ul", class_="slots").all("li")
    assert "Slot 0" in busy.text
    assert "generating" in busy.text
    assert f"context {used}{size}" in busy.text
    assert "12 tokens generated" in busy.text
    assert "Slot 1" in idle.text
    assert "idle" in idle.text


def test_a_model_that_is_stopped_has_no_slots() -> None:
    page = model_page(samples.model("B", State.STOPPED))
    assert list(parse(templates().page("model.html", page, OPERATOR)).all("ul", class_="slots")) == []
