"""`/infill`: its checks and the layout of its prompt."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from framework.nativeserver.infill import Parts, infill_prompt
from tests.nativeserver.generation_world import World, generation_world

PREFIX, SUFFIX, MIDDLE, REPOSITORY, SEPARATOR = 290, 291, 292, 293, 294
META = SimpleNamespace(
    fim_prefix=PREFIX,
    fim_suffix=SUFFIX,
    fim_middle=MIDDLE,
    fim_repository=REPOSITORY,
    fim_separator=SEPARATOR,
    bos=1,
    adds_bos=False,
)
FACTS = SimpleNamespace(n_ctx_slot=64, n_batch=32)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with generation_world() as made:
        made.engine.meta_.fim_prefix, made.engine.meta_.fim_suffix = PREFIX, SUFFIX
        made.engine.meta_.fim_middle = MIDDLE
        yield made


async def test_missing_tokens_are_listed(world: World) -> None:
    world.engine.meta_.fim_prefix = world.engine.meta_.fim_middle = -1
    call = await world.post("/infill", {})
    assert (call.status, call.error()["type"]) == (501, "not_supported_error")
    assert call.error()["message"].endswith("prefix token is missing. middle token is missing.")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"input_suffix": "b"}, id="no prefix"),
        pytest.param({"input_prefix": "a", "input_suffix": None}, id="no suffix"),
        pytest.param({"input_prefix": 5, "input_suffix": "b"}, id="prefix a number"),
        pytest.param({"input_prefix": "a", "input_suffix": "b", "prompt": 5}, id="prompt a number"),
        pytest.param({"input_prefix": "a", "input_suffix": "b", "input_extra": {}}, id="extra no list"),
        pytest.param(
            {"input_prefix": "a", "input_suffix": "b", "input_extra": [{}]}, id="extra without text"
        ),
        pytest.param(
            {"input_prefix": "a", "input_suffix": "b", "input_extra": [{"text": "x", "filename": 1}]},
            id="file name a number",
        ),
        pytest.param({"input_prefix": "a", "input_suffix": "b", "top_k": "x"}, id="a field of all routes"),
    ],
)
async def test_a_broken_body_is_refused_and_nothing_runs(world: World, body: dict[str, Any]) -> None:
    assert (await world.post("/infill", body)).status == 400
    assert world.engine.tasks == []


async def test_the_gap_is_between_prefix_and_suffix(world: World) -> None:
    body = {"input_prefix": "a", "input_suffix": "b", "prompt": "c"}
    answer = await world.post("/infill", body)
    (task,) = world.engine.tasks
    assert (task.kind, task.tokens) == ("infill", [PREFIX, 97, 99, SUFFIX, 98, MIDDLE])
    assert answer.json()["content"] == "hello"


async def test_extra_files_follow_the_pattern_of_a_repository(world: World) -> None:
    world.engine.meta_.fim_repository, world.engine.meta_.fim_separator = REPOSITORY, SEPARATOR
    extra = [{"text": "x", "filename": "f"}]
    await world.post("/infill", {"input_prefix": "", "input_suffix": "", "input_extra": extra})
    tokens = world.engine.tasks[0].tokens
    assert tokens[0] == REPOSITORY
    first = tokens.index(SEPARATOR)
    assert tokens[first + 1 : first + 4] == list(b"f\nx")
    assert tokens[-3:] == [PREFIX, SUFFIX, MIDDLE]


async def test_extra_files_are_plain_text_without_those_tokens(world: World) -> None:
    body = {"input_prefix": "", "input_suffix": "", "input_extra": [{"text": "x", "filename": None}]}
    await world.post("/infill", body)
    assert bytes(world.engine.tasks[0].tokens[:-3]) == b"\n\n--- snippet ---\n\nx"


def layout(
    *, n_predict: int = -1, suffix_first: bool = False, adds_bos: bool = False, **parts: Any
) -> list[int]:
    given = Parts(**{"prefix": [5], "suffix": [6], "prompt": [7], "extra": [8], **parts})
    meta = SimpleNamespace(**{**vars(META), "adds_bos": adds_bos})
    return infill_prompt(given, meta, FACTS, n_predict=n_predict, suffix_first=suffix_first)


def test_the_order_can_be_swapped() -> None:
    assert layout() == [8, PREFIX, 5, 7, SUFFIX, 6, MIDDLE]
    assert layout(suffix_first=True) == [8, SUFFIX, 6, PREFIX, 5, 7, MIDDLE]


def test_a_prompt_begins_as_the_vocabulary_wants() -> None:
    assert layout(adds_bos=True) == [8, META.bos, PREFIX, 5, 7, SUFFIX, 6, MIDDLE]


def test_each_part_has_its_share() -> None:
    prompt = layout(prefix=list(range(100)), suffix=list(range(100)), extra=list(range(100)), n_predict=4)
    extra, rest = prompt[: prompt.index(PREFIX)], prompt[prompt.index(PREFIX) :]
    assert extra == list(range(76, 100))
    assert rest == [PREFIX, *range(76, 100), 7, SUFFIX, *range(5), MIDDLE]


def test_a_long_prompt_leaves_no_place_for_a_suffix() -> None:
    assert layout(prompt=[7] * 40) == [8, PREFIX, 5, *[7] * 40, SUFFIX, MIDDLE]
