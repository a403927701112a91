"""The endpoint over a real llama-server, asked by the client library that people use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.proxy.http_server import served
from tests.proxy.real_engine import CONTEXT, SLOTS, RealEngine, running_engine
from tests.proxy.world import World

pytestmark = pytest.mark.engine

QUESTION: list[Any] = [{"role": "user", "content": "Say hello."}]
NO_EARLY_END = {"ignore_eos": True}
LONG_ANSWER = {"max_tokens": 400, **NO_EARLY_END}
TOO_LONG: list[Any] = [{"role": "user", "content": "word " * 3000}]


@pytest.fixture(scope="module")
def engine(engine_binary: Path, smollm2: Path) -> Iterator[RealEngine]:
    with running_engine(engine_binary, smollm2) as running:
        yield running


@pytest.fixture
async def url(world: World, engine: RealEngine) -> AsyncIterator[str]:
    """The endpoint on a socket, over the real engine."""
    world.engine.url = engine.url
    world.fleet.slot_context = CONTEXT // SLOTS
    async with served(world.app) as address:
        yield address


@pytest.fixture
async def client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as found:
        yield found


async def test_a_chat(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(model="gpt", messages=QUESTION, max_tokens=8)
    assert answer.model == "gpt"
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason in {"length", "stop"}
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


async def test_a_streamed_chat(client: openai.AsyncOpenAI) -> None:
    text, reasons = "", []
    stream = await client.chat.completions.create(model="gpt", messages=QUESTION, max_tokens=8, stream=True)
    async for piece in stream:
        # Every chunk has a choice, as programs that never heard of usage chunks expect.
        text += piece.choices[0].delta.content or ""
        reasons.append(piece.choices[0].finish_reason)
    assert text
    assert reasons[-1] in {"length", "stop"}


async def test_a_streamed_chat_with_usage(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="smol", messages=QUESTION, max_tokens=8, stream=True, stream_options={"include_usage": True}
    )
    pieces = [piece async for piece in stream]
    assert pieces[-1].choices == []
    assert pieces[-1].usage is not None
    assert [piece for piece in pieces[:-1] if piece.usage] == []


async def test_the_same_seed_gives_the_same_text_streamed_or_not(client: openai.AsyncOpenAI) -> None:
    asked: dict[str, Any] = {"model": "smol", "messages": QUESTION, "max_tokens": 6, "temperature": 0}
    whole = await client.chat.completions.create(**asked)
    stream = await client.chat.completions.create(**asked, stream=True)
    pieces = [piece.choices[0].delta.content or "" async for piece in stream]
    assert "".join(pieces) == whole.choices[0].message.content


async def test_several_choices_count_all_their_tokens(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(
        model="smol", messages=QUESTION, max_tokens=4, n=2, extra_body=NO_EARLY_END
    )
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 8


async def test_log_probabilities(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(
        model="smol",
        messages=QUESTION,
        max_tokens=3,
        logprobs=True,
        top_logprobs=1,
        extra_body=NO_EARLY_END,
    )
    assert answer.choices[0].logprobs is not None
    # The engine puts tokens that are parts of one character into one entry.
    assert 1 <= len(answer.choices[0].logprobs.content or []) <= 3


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
async def test_a_completion(client: openai.AsyncOpenAI, streamed: bool) -> None:
    asked: dict[str, Any] = {"model": "smol", "prompt": "Once upon a", "max_tokens": 6, "temperature": 0}
    if streamed:
        stream = await client.completions.create(**asked, stream=True)
        text = "".join([piece.choices[0].text async for piece in stream])
    else:
        text = (await client.completions.create(**asked)).choices[0].text
    assert text


async def test_embeddings_of_a_chat_model_are_refused_clearly(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as caught:
        await client.embeddings.create(model="smol", input="x")
    assert caught.value.status_code == 501
    assert caught.value.code == "not_supported"
    assert "smol does not support" in caught.value.message


async def test_models_are_listed(client: openai.AsyncOpenAI) -> None:
    assert [entry.id async for entry in client.models.list()] == ["smol"]
    assert (await client.models.retrieve("gpt")).id == "smol"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
async def test_a_prompt_that_is_too_long(client: openai.AsyncOpenAI, streamed: bool) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(model="smol", messages=TOO_LONG, stream=streamed)
    error: Any = caught.value.body
    assert (error["code"], error["type"]) == ("context_length_exceeded", "exceed_context_size_error")
    assert error["n_prompt_tokens"] > 3000
    assert error["n_ctx"] == CONTEXT // SLOTS


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
async def test_a_client_that_leaves_frees_its_slot(url: str, engine: RealEngine, streamed: bool) -> None:
    body = {"model": "smol", "messages": QUESTION, "stream": streamed, **LONG_ANSWER}
    async with httpx.AsyncClient() as leaving:
        asking = asyncio.create_task(leaving.post(f"{url}/v1/chat/completions", json=body, timeout=60))
        await engine.wait_busy(1)
        asking.cancel()
    slots = await engine.wait_busy(0)
    generated = [slot["next_token"][0]["n_decoded"] for slot in slots if "next_token" in slot]
    assert max(generated) < LONG_ANSWER["max_tokens"]


async def test_a_cancel_frees_the_slot_and_ends_the_stream(
    world: World, client: openai.AsyncOpenAI, engine: RealEngine
) -> None:
    stream = await client.chat.completions.create(
        model="smol", messages=QUESTION, stream=True, extra_body=LONG_ANSWER
    )
    reasons = []
    async for piece in stream:
        if piece.choices:
            reasons.append(piece.choices[0].finish_reason)
        if len(reasons) == 3:
            for view in world.services.requests.views():
                world.services.requests.cancel(view.id)
    assert reasons[-1] == "stop"
    await engine.wait_busy(0)


@pytest.mark.parametrize(
    "absurd",
    [
        {"temperature": 999999},
        {"top_p": -1},
        {"repeat_penalty": 0},
        {"top_k": -5},
        {"temperature": "0.7"},
        {"max_tokens": 0},
        {"max_tokens": -1, "stop": ["\n", " "]},
        {"seed": 2**70},
        {"messages": []},
        {"messages": "x"},
    ],
    ids=str,
)
async def test_absurd_values_are_answered_or_refused_and_do_no_harm(
    url: str, engine: RealEngine, absurd: dict[str, Any]
) -> None:
    async with httpx.AsyncClient(timeout=110) as asking:
        body = {"model": "smol", "messages": QUESTION, "max_tokens": 4, "temperature": 0}
        odd, good = await asyncio.gather(
            asking.post(f"{url}/v1/chat/completions", json={**body, **absurd}),
            asking.post(f"{url}/v1/chat/completions", json=body),
        )
    assert odd.status_code in {200, 400}
    assert good.status_code == 200
    assert engine.process.poll() is None
    await engine.wait_busy(0)


async def test_a_wrong_type_is_refused_by_name(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(
            model="smol", messages=QUESTION, extra_body={"temperature": "0.7"}
        )
    assert "temperature" in caught.value.message


async def test_prompt_progress_comes_before_the_answer(url: str) -> None:
    body = {"model": "smol", "messages": QUESTION, "max_tokens": 2, "stream": True, "return_progress": True}
    async with httpx.AsyncClient(timeout=110) as asking:
        answer = await asking.post(f"{url}/v1/chat/completions", json=body)
    assert answer.text.index("prompt_progress") < answer.text.index('"role"')
    assert answer.text.count('"role"') == 1


async def test_an_engine_that_dies_ends_its_stream_with_an_error(
    world: World, engine_binary: Path, smollm2: Path
) -> None:
    with running_engine(engine_binary, smollm2) as engine:
        world.engine.url = engine.url
        call = world.start_chat(messages=QUESTION, stream=True, **LONG_ANSWER)
        await call.until(b'"content":"', 30)
        engine.process.kill()
        await call.finished()
    assert call.events()[-1]["error"]["code"] == "stream_interrupted"
    assert call.payloads()[-1] == "[DONE]"
    assert world.fleet.failures[0].opened
