"""The forms of a prompt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.types import Message

from framework.nativeserver.errors import ApiError
from framework.nativeserver.prompt_input import SURE_TOKEN, read_inputs, text_length
from framework.nativeserver.text_work import AT_ONCE
from tests.nativeserver.generation_world import N_VOCAB, SPECIAL_ID, World, generation_world


async def waiting() -> Message:
    """A client that stays."""
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with generation_world() as made:
        yield made


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("ab", [[97, 98]], id="text"),
        pytest.param("<|im_end|>", [[SPECIAL_ID]], id="special tokens are parsed"),
        pytest.param("", [[]], id="empty text"),
        pytest.param([5, 6], [[5, 6]], id="ids"),
        pytest.param(["a", 5, "b"], [[97, 5, 98]], id="mixed"),
        pytest.param(["a", "b"], [[97], [98]], id="texts"),
        pytest.param([["a", 5], "b", [7], []], [[97, 5], [98], [7], []], id="list of all forms"),
        pytest.param({"prompt_string": "a"}, [[97]], id="object"),
        pytest.param([{"prompt_string": "a", "multimodal_data": []}], [[97]], id="object without media"),
    ],
)
async def test_a_prompt_becomes_tokens(world: World, value: Any, expected: list[list[int]]) -> None:
    assert await read_inputs(waiting, value, world.bridge, most=10) == expected


@pytest.mark.parametrize("value", [None, 5, True, {}, {"x": 1}, [1.5], [None], [[["a"]]], [True, 5], []])
async def test_any_other_form_is_refused(world: World, value: Any) -> None:
    with pytest.raises(ApiError) as caught:
        await read_inputs(waiting, value, world.bridge, most=10)
    assert caught.value.status == 400
    assert caught.value.message.startswith('"prompt" must')


@pytest.mark.parametrize("token", [-1, N_VOCAB, 10**30])
async def test_a_token_outside_the_vocabulary_is_refused(world: World, token: int) -> None:
    with pytest.raises(ApiError) as caught:
        await read_inputs(waiting, [token], world.bridge, most=10)
    assert caught.value.message.startswith("Prompt contains invalid tokens")


async def test_media_are_refused(world: World) -> None:
    with pytest.raises(ApiError) as caught:
        await read_inputs(waiting, {"prompt_string": "a", "multimodal_data": ["x"]}, world.bridge, most=10)
    assert "Multimodal" in caught.value.message


async def test_the_number_of_inputs_is_bounded(world: World) -> None:
    with pytest.raises(ApiError) as caught:
        await read_inputs(waiting, ["a"] * 11, world.bridge, most=10)
    assert "11" in caught.value.message


async def test_a_long_text_is_read_whole(world: World) -> None:
    (tokens,) = await read_inputs(waiting, "x" * (AT_ONCE + 1), world.bridge, most=1)
    assert len(tokens) == AT_ONCE + 1


def tokenised(world: World, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lengths of the texts that reach the tokeniser."""
    inner, seen = world.engine.tokenize, list[int]()

    def noted(text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        seen.append(len(text))
        return inner(text, add_special, parse_special)

    monkeypatch.setattr(world.engine, "tokenize", noted)
    return seen


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda text: text, id="text"),
        pytest.param(lambda text: ["a", [text]], id="one of several"),
        pytest.param(lambda text: [5, text], id="mixed"),
    ],
)
async def test_a_text_that_can_not_fit_is_refused_before_it_is_tokenised(
    world: World, monkeypatch: pytest.MonkeyPatch, form: Any
) -> None:
    seen = tokenised(world, monkeypatch)
    world.engine.facts_.n_ctx_slot = 1000
    longest = SURE_TOKEN + 8
    monkeypatch.setattr(world.engine, "piece", lambda token, special: b"x" * (longest if token == 9 else 1))
    fits, too_long = "x" * (1000 * longest), "x" * (1000 * longest + 1)
    with pytest.raises(ApiError) as caught:
        await read_inputs(waiting, form(too_long), world.bridge, most=10)
    assert (caught.value.kind, caught.value.status) == ("exceed_context_size", 400)
    assert caught.value.extra == {"n_prompt_tokens": 1001, "n_ctx": 1000}
    assert seen == []
    await read_inputs(waiting, form(fits), world.bridge, most=10)
    assert len(fits) in seen


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ("ab", 2),
        (["a", "b", 5], 2),
        ({"prompt_string": "abc"}, 3),
        ([["a", 5], {"prompt_string": "b"}], 2),
        (5, 0),
    ],
)
def test_all_texts_of_a_prompt_have_a_length(value: Any, length: int) -> None:
    assert text_length(value) == length
