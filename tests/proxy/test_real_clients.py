"""Every family of routes over a real llama-server, asked by the programs that people use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from langchain_openai import ChatOpenAI

from tests.proxy.http_server import served
from tests.proxy.real_engine import CONTEXT, SLOTS, RealEngine, running_engine
from tests.proxy.world import World

pytestmark = pytest.mark.engine

SLOT = CONTEXT // SLOTS
QUESTION: list[Any] = [{"role": "user", "content": "Say hello."}]
TOO_LONG = "word " * 3000
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 4}}, "required": ["a"]}


@pytest.fixture(scope="module")
def engine(engine_binary: Path, smollm2: Path) -> Iterator[RealEngine]:
    with running_engine(engine_binary, smollm2) as running:
        yield running


@pytest.fixture
async def url(world: World, engine: RealEngine) -> AsyncIterator[str]:
    """The endpoint on a socket, over the real engine."""
    world.engine.url = engine.url
    world.fleet.slot_context = SLOT
    async with served(world.app) as address:
        yield address


@pytest.fixture
async def openai_client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as found:
        yield found


@pytest.fixture
async def claude(url: str) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0) as found:
        yield found


@pytest.fixture
async def plain(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, timeout=60) as found:
        yield found


# OpenAI's Responses


async def test_a_response(openai_client: openai.AsyncOpenAI, world: World) -> None:
    answer = await openai_client.responses.create(model="gpt", input="Say hello.", max_output_tokens=5)
    assert (answer.model, answer.status) == ("gpt", "incomplete")
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.output_text
    assert answer.usage is not None
    assert answer.usage.output_tokens == 5
    record = world.records[-1]
    assert (record.route, record.status, record.generated_tokens) == ("/v1/responses", 200, 5)
    assert (record.stop_reason, record.model) == ("length", "smol")


async def test_a_streamed_response_is_put_together_by_the_client(openai_client: openai.AsyncOpenAI) -> None:
    async with openai_client.responses.stream(
        model="gpt", input="Say hello.", max_output_tokens=5, temperature=0
    ) as stream:
        events = [event async for event in stream]
    assert [event.sequence_number for event in events] == sorted({e.sequence_number for e in events})
    assert events[0].type == "response.created"
    # What the limit cut off is not sold as complete; llama-server itself calls it so.
    assert events[-1].type == "response.incomplete"
    final = events[-1].response
    deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert deltas == final.output_text
    whole = await openai_client.responses.create(
        model="gpt", input="Say hello.", max_output_tokens=5, temperature=0
    )
    assert whole.output_text == final.output_text


async def test_the_format_of_a_response_is_heeded(openai_client: openai.AsyncOpenAI) -> None:
    wanted: Any = {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": True}}
    answer = await openai_client.responses.create(
        model="smol", input="Anything.", text=wanted, max_output_tokens=60, temperature=0
    )
    assert set(json.loads(answer.output_text)) == {"a"}


async def test_a_response_to_a_prompt_that_is_too_long(openai_client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await openai_client.responses.create(model="smol", input=TOO_LONG, stream=True)
    assert caught.value.code == "context_length_exceeded"


# Anthropic's Messages


async def test_a_message(claude: anthropic.AsyncAnthropic, world: World) -> None:
    answer = await claude.messages.create(model="gpt", messages=QUESTION, max_tokens=5)
    assert (answer.model, answer.type, answer.role) == ("gpt", "message", "assistant")
    assert answer.content[0].type == "text"
    assert answer.content[0].text
    assert answer.stop_reason in {"max_tokens", "end_turn"}
    record = world.records[-1]
    told = answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0)
    # The engine does not count the prompt where the first token gives no text.
    assert (record.prompt_tokens or 0, record.generated_tokens) == (told, answer.usage.output_tokens)
    assert record.first_token_s is not None


async def test_a_streamed_message_is_the_same(claude: anthropic.AsyncAnthropic) -> None:
    still = {"temperature": 0}
    asked: Any = {"model": "gpt", "messages": QUESTION, "max_tokens": 6, "extra_body": still}
    whole = await claude.messages.create(**asked)
    async with claude.messages.stream(**asked) as stream:
        text = "".join([piece async for piece in stream.text_stream])
        final = await stream.get_final_message()
    assert whole.content[0].type == "text"
    assert text == whole.content[0].text
    assert (final.model, final.stop_reason) == ("gpt", whole.stop_reason)


async def test_the_tokens_of_a_conversation_are_counted(claude: anthropic.AsyncAnthropic) -> None:
    counted = await claude.messages.count_tokens(model="gpt", messages=QUESTION)
    answer = await claude.messages.create(model="gpt", messages=QUESTION, max_tokens=1)
    told = answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0)
    assert counted.input_tokens == told


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_conversation_that_is_too_long(claude: anthropic.AsyncAnthropic, stream: bool) -> None:
    long: list[Any] = [{"role": "user", "content": TOO_LONG}]
    with pytest.raises(anthropic.BadRequestError) as caught:
        await claude.messages.create(model="smol", messages=long, max_tokens=5, stream=stream)
    error: Any = caught.value.body
    assert error["type"] == "error"
    assert error["error"]["type"] == "invalid_request_error"
    assert error["error"]["message"].startswith("prompt is too long: ")
    assert error["error"]["n_ctx"] == SLOT


async def test_an_unknown_model_names_its_neighbours(claude: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match=r"Nearest names: .*smol"):
        await claude.messages.create(model="smoll", messages=QUESTION, max_tokens=5)


async def test_a_message_waits_for_its_model_with_signs_of_life(
    claude: anthropic.AsyncAnthropic, world: World
) -> None:
    world.limit(keepalive_interval_s=0.05)
    world.fleet.gate.clear()
    stream = await claude.messages.create(model="smol", messages=QUESTION, max_tokens=3, stream=True)
    # The client has its headers: comments came while no instance was to be had.
    assert world.fleet.acquired
    assert not world.fleet.leases
    world.fleet.gate.set()
    assert [event.type async for event in stream][-1] == "message_stop"


async def test_a_client_that_leaves_a_message_frees_the_slot(
    claude: anthropic.AsyncAnthropic, engine: RealEngine, world: World
) -> None:
    story: list[Any] = [{"role": "user", "content": "Write a very long story about a horse."}]
    async with claude.messages.stream(model="smol", messages=story, max_tokens=450) as stream:
        async for _ in stream.text_stream:
            break
    await engine.wait_busy(0)
    await _recorded(world, 1)
    assert world.fleet.open_leases == 0
    if world.records[-1].status != 200:
        assert world.records[-1].status == 499


# llama-server's own


async def test_a_completion_streamed_and_not(plain: httpx.AsyncClient) -> None:
    asked = {"model": "gpt", "prompt": "Once", "n_predict": 4, "temperature": 0, "return_tokens": True}
    whole = (await plain.post("/completion", json=asked)).json()
    assert (whole["model"], whole["tokens_predicted"], len(whole["tokens"])) == ("gpt", 4, 4)
    lines = (await plain.post("/completion", json={**asked, "stream": True})).text.splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line]
    assert "".join(event["content"] for event in events) == whole["content"]
    assert [event["stop"] for event in events] == [False] * 4 + [True]
    assert events[-1]["timings"]["predicted_n"] == 4


async def test_several_prompts_and_picked_fields(plain: httpx.AsyncClient) -> None:
    fields = ["content", "timings/predicted_n"]
    asked = {"prompt": ["a", "b"], "n_predict": 2, "response_fields": fields}
    answer = (await plain.post("/completions", json=asked)).json()
    assert [set(one) for one in answer] == [set(fields)] * 2


async def test_text_and_tokens(plain: httpx.AsyncClient) -> None:
    tokens = (await plain.post("/m/gpt/tokenize", json={"content": "hello world"})).json()["tokens"]
    assert (await plain.post("/detokenize?model=gpt", json={"tokens": tokens})).json() == {
        "content": "hello world"
    }


async def test_a_template_is_applied_and_counted(plain: httpx.AsyncClient) -> None:
    prompt = (await plain.post("/apply-template", json={"messages": QUESTION})).json()["prompt"]
    counted = await plain.post("/v1/chat/completions/input_tokens", json={"messages": QUESTION})
    tokens = (await plain.post("/tokenize", json={"content": prompt})).json()["tokens"]
    assert counted.json()["input_tokens"] == len(tokens)


async def test_an_instance_is_looked_at(plain: httpx.AsyncClient, world: World) -> None:
    props = (await plain.get("/props?model=gpt")).json()
    assert (props["model_alias"], props["total_slots"]) == ("gpt", SLOTS)
    assert props["model_path"] == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert len((await plain.get("/m/smol/slots")).json()) == SLOTS
    assert (await plain.get("/lora-adapters")).json() == []
    assert world.fleet.acquired == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/rerank", {"query": "x", "documents": ["a"]}),
        ("/v1/embeddings", {"input": "x"}),
        ("/embeddings", {"content": "x"}),
        ("/infill", {"input_prefix": "a", "input_suffix": "b"}),
    ],
)
async def test_what_the_model_cannot_do(plain: httpx.AsyncClient, path: str, body: Any) -> None:
    answer = await plain.post(path, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (501, "not_supported")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}),
        ("/v1/messages", {"messages": 5}),
        ("/v1/messages", {"messages": [{"content": "x"}]}),
        ("/v1/responses", {"input": 5}),
        ("/v1/responses", {"input": [{"role": "user", "content": 5}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}),
        ("/tokenize", {"content": 5}),
        ("/detokenize", {"tokens": [99_999_999]}),
        ("/detokenize", {"tokens": "x"}),
        ("/completion", {}),
    ],
)
async def test_mistakes_of_clients_are_told_as_such(plain: httpx.AsyncClient, path: str, body: Any) -> None:
    answer = await plain.post(path, json={"max_tokens": 2, **body})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_body")


async def test_vectors(
    openai_client: openai.AsyncOpenAI,
    plain: httpx.AsyncClient,
    world: World,
    engine_binary: Path,
    smollm2: Path,
) -> None:
    with running_engine(engine_binary, smollm2, "--embeddings", "--pooling", "mean") as running:
        world.engine.url = running.url
        answer = await openai_client.embeddings.create(model="gpt", input=["a horse", "a mare"])
        assert (answer.model, [entry.index for entry in answer.data]) == ("gpt", [0, 1])
        assert len(answer.data[0].embedding) == len(answer.data[1].embedding) > 100
        assert answer.usage.prompt_tokens > 0
        own = (await plain.post("/m/gpt/embeddings", json={"content": "a horse"})).json()
        assert own[0]["embedding"][0] == pytest.approx(answer.data[0].embedding, abs=1e-4)


# Further programs


async def test_the_list_of_models(openai_client: openai.AsyncOpenAI, url: str) -> None:
    assert [entry.id async for entry in openai_client.models.list()] == ["smol"]
    async with openai.AsyncOpenAI(base_url=f"{url}/m/gpt/v1", api_key="none") as below:
        assert [entry.id async for entry in below.models.list()] == ["smol"]
        answer = await below.chat.completions.create(model="other", messages=QUESTION, max_tokens=2)
        assert answer.model == "gpt"


async def test_langchain(url: str) -> None:
    chat = ChatOpenAI(base_url=f"{url}/v1", api_key="none", model="gpt", max_tokens=5, max_retries=0)
    answer = await chat.ainvoke("Say hello.")
    assert answer.content
    assert answer.usage_metadata is not None
    pieces = [piece async for piece in chat.astream("Say hello.")]
    assert "".join(str(piece.content) for piece in pieces)


async def test_curl(url: str) -> None:
    body = json.dumps({"messages": QUESTION, "max_tokens": 3, "stream": True})
    process = await asyncio.create_subprocess_exec(
        *("curl", "-sN", f"{url}/m/smol/v1/messages", "-H", "Content-Type: application/json", "-d", body),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert out.startswith(b"event: message_start\ndata: ")
    assert out.rstrip().endswith(b'data: {"type":"message_stop"}')


async def _recorded(world: World, count: int) -> None:
    async with asyncio.timeout(30):
        while len(world.records) < count:
            await asyncio.sleep(0.02)
