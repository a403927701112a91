"""The forms of a prompt."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from framework.nativeserver.errors import ApiError
from framework.nativeserver.off_loop import LARGE
from framework.nativeserver.prompt_input import read_inputs
from tests.nativeserver.generation_world import N_VOCAB, SPECIAL_ID, World, generation_world


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
    assert await read_inputs(value, world.bridge, most=10) == expected


@pytest.mark.parametrize("value", [None, 5, True, {}, {"x": 1}, [1.5], [None], [[["a"]]], [True, 5], []])
async def test_any_other_form_is_refused(world: World, value: Any) -> None:
    with pytest.raises(ApiError) as caught:
        await read_inputs(value, world.bridge, most=10)
    assert caught.value.status == 400
    assert caught.value.message.startswith('"prompt" must')


@pytest.mark.parametrize("token", [-1, N_VOCAB, 10**30])
async def test_a_token_outside_the_vocabulary_is_refused(world: World, token: int) -> None:
    with pytest.raises(ApiError) as caught:
        await read_inputs([token], world.bridge, most=10)
    assert caught.value.message.startswith("Prompt contains invalid tokens")


async def test_media_are_refused(world: World) -> None:
    with pytest.raises(ApiError) as caught:
        await read_inputs({"prompt_string": "a", "multimodal_data": ["x"]}, world.bridge, most=10)
    assert "Multimodal" in caught.value.message


async def test_the_number_of_inputs_is_bounded(world: World) -> None:
    with pytest.raises(ApiError) as caught:
        await read_inputs(["a"] * 11, world.bridge, most=10)
    assert "11" in caught.value.message


async def test_a_long_text_is_read_whole(world: World) -> None:
    (tokens,) = await read_inputs("x" * (LARGE + 1), world.bridge, most=1)
    assert len(tokens) == LARGE + 1
