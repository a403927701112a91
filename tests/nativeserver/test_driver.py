"""One request, its tasks and its one answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from framework.nativeserver import driver
from framework.nativeserver.completion_ids import new_completion_id
from framework.nativeserver.off_loop import LARGE
from framework.nativeserver.transport import JsonResponse
from tests.nativeserver.generation_world import World, failure, final, generation_world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with generation_world() as made:
        yield made


def test_a_completion_id_has_32_letters_and_digits_and_is_not_repeated() -> None:
    first, second = new_completion_id(), new_completion_id()
    assert first != second
    assert first.startswith("chatcmpl-")
    assert len(first.removeprefix("chatcmpl-")) == 32
    assert first.removeprefix("chatcmpl-").isalnum()


async def test_every_input_has_a_parent_and_its_further_choices(world: World) -> None:
    await world.post("/completion", {"prompt": ["a", "bc"], "n": 2, "id_slot": 3})
    tasks = world.engine.tasks
    assert [task.index for task in tasks] == [0, 1, 2, 3]
    assert [list(task.children) for task in tasks] == [[1], [], [3], []]
    assert [task.parent for task in tasks] == [-1, 0, -1, 2]
    assert [task.tokens for task in tasks] == [[97], [97], [98, 99], [98, 99]]
    assert [task.id_slot for task in tasks] == [3, -1, 3, -1]
    assert len({task.completion_id for task in tasks}) == 1


async def test_answers_are_in_task_order_whatever_came_first(world: World) -> None:
    world.engine.results = lambda task: []
    call = world.start("/completion", {"prompt": ["a", "b", "c"]})
    tasks = await world.submitted(3)
    world.engine.push(*(final(task, str(task.index).encode()) for task in reversed(tasks)))
    await call.finished()
    assert [answer["content"] for answer in call.json()] == ["0", "1", "2"]


async def test_the_first_error_is_the_answer_and_the_rest_is_cancelled(world: World) -> None:
    world.engine.results = lambda task: [failure(task, "unavailable", b"stopping")] if task.index == 1 else []
    call = await world.post("/completion", {"prompt": ["a", "b", "c"]})
    assert call.status == 503
    assert call.error() == {"code": 503, "message": "stopping", "type": "unavailable_error"}
    assert world.engine.cancelled == [1, 3]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_that_is_too_long_is_a_400_with_both_numbers(world: World, stream: bool) -> None:
    world.engine.results = lambda task: [
        failure(task, "exceed_context_size", b"too long", n_prompt_tokens=2000, n_ctx=1024)
    ]
    call = await world.post("/completion", {"prompt": "a", "stream": stream})
    assert call.status == 400
    assert call.error()["type"] == "exceed_context_size_error"
    assert (call.error()["n_prompt_tokens"], call.error()["n_ctx"]) == (2000, 1024)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_while_it_waits_ends_its_tasks(world: World, stream: bool) -> None:
    world.engine.results = lambda task: []
    call = world.start("/completion", {"prompt": ["a", "b"], "stream": stream})
    await world.submitted(2)
    call.gone.set()
    await call.finished()
    assert world.engine.cancelled == [1, 2]
    assert call.messages == []


async def test_a_finished_request_cancels_nothing(world: World) -> None:
    await world.post("/completion", {"prompt": "a"})
    assert world.engine.cancelled == []


async def test_a_cancelled_handler_cancels_its_tasks(world: World) -> None:
    world.engine.results = lambda task: []
    call = world.start("/completion", {"prompt": "a"})
    await world.submitted()
    assert call.task is not None
    call.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.task
    assert world.engine.cancelled == [1]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"prompt": ["a"] * (driver.MAX_TASKS + 1)}, id="inputs"),
        pytest.param({"prompt": ["a"] * (driver.MAX_TASKS // 2 + 1), "n": 2}, id="inputs-times-choices"),
        pytest.param({"prompt": ["a"] * 1000, "stop": "x" * 2**20}, id="copies-of-large-texts"),
    ],
)
async def test_a_request_can_not_become_arbitrarily_many_tasks(world: World, body: dict[str, Any]) -> None:
    call = await world.post("/completion", body)
    assert (call.status, world.engine.tasks) == (400, [])


async def test_a_long_reply_is_shaped_beside_the_loop_and_is_whole(world: World) -> None:
    text = b"x" * (LARGE + 1)
    world.engine.results = lambda task: [final(task, text)]
    call = await world.post("/completion", {"prompt": "a"})
    assert len(call.json()["content"]) == len(text)


async def test_bytes_that_are_no_text_are_replaced(world: World) -> None:
    world.engine.results = lambda task: [final(task, b"a\xffb")]
    assert (await world.post("/completion", {"prompt": "a"})).json()["content"] == "a�b"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"n_probs": 1024, "n_predict": 100}, 200),
        ({"n_probs": 1024, "n_predict": -1, "prompt": ["a"] * 20}, 400),
        ({"n_probs": 1024, "n_predict": -1, "prompt": ["a"] * 20, "stream": True}, 200),
    ],
)
async def test_more_probabilities_than_memory_should_hold_are_streamed_or_refused(
    world: World, body: dict[str, Any], status: int
) -> None:
    call = await world.post("/completion", {"prompt": "a", **body})
    assert call.status == status
    if status == 400:
        assert "set stream, or ask for fewer" in call.error()["message"]


async def test_all_that_every_task_holds_is_counted(world: World) -> None:
    params = world.services.bridge.module.GenerationParams()
    params.sampling.dry_sequence_breakers = []
    before = driver.shared_bytes(params)
    params.sampling.reasoning.message = "x" * 10
    params.sampling.reasoning.end_tags = ["y" * 5]
    params.sampling.dry_sequence_breakers = ["z" * 7]
    params.sampling.logit_bias = [(1, 0.5), (2, 0.5)]
    assert driver.shared_bytes(params) - before == 10 + 5 + 7 + 4 * driver.ENTRY_BYTES


STOPS = [f"{number:060d}" for number in range(16_000)]
"""Nearly as many bytes as stop strings may have."""


async def test_many_answers_do_not_repeat_large_settings(world: World) -> None:
    call = await world.post("/completion", {"prompt": [""] * 250, "stop": STOPS})
    assert call.status == 400
    assert "send them one by one" in call.error()["message"]
    assert world.engine.tasks == []


async def test_two_hundred_prompts_are_answered(world: World) -> None:
    body = {"prompt": ["a prompt of some words " * 20] * 200, "stop": ["\n\n"], "grammar": 'root ::= "a"*'}
    answers = (await world.post("/completion", body)).json()
    assert [answer["index"] for answer in answers] == list(range(200))
    assert answers[-1]["prompt"] == body["prompt"][-1]


@pytest.mark.parametrize(
    ("body", "is_beside"),
    [
        pytest.param({"prompt": "a"}, False, id="small"),
        pytest.param({"prompt": "a", "stop": STOPS}, True, id="settings"),
        pytest.param({"prompt": ["a"] * 100}, True, id="many"),
        pytest.param({"prompt": [[97] * 1000] * 20}, True, id="prompts"),
    ],
)
async def test_a_large_answer_is_made_beside_the_loop(
    world: World, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], is_beside: bool
) -> None:
    threads: list[threading.Thread] = []

    class Noted(JsonResponse):
        def render(self, content: Any) -> Any:
            threads.append(threading.current_thread())
            return super().render(content)

    monkeypatch.setattr(driver, "JsonResponse", Noted)
    assert (await world.post("/completion", body)).status == 200
    (thread,) = threads
    assert (thread is not threading.main_thread()) is is_beside
