"""What the families refuse before anything is loaded, and what they send (cases BI-05; 08 §8, 12 §9-11)."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from framework.proxy.errors import ProxyError
from framework.proxy.media_blocks import has_images, prepare_blocks, prepare_items
from tests.proxy.families import COMPLETION, FAMILIES, MESSAGES, RESPONSES, Family
from tests.proxy.world import World, model

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
PNG_URL = f"data:image/png;base64,{PNG}"


def image(**source: Any) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PNG, **source}}


def said(*blocks: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(blocks)}]


def input_image(url: Any, **more: Any) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url, **more}


def test_a_picture_of_a_message_gets_its_true_type() -> None:
    given = said({"type": "text", "text": "x"}, image())
    prepared = prepare_blocks(given)
    assert prepared[0]["content"][1]["source"]["media_type"] == "image/png"
    assert given[0]["content"][1]["source"]["media_type"] == "image/jpeg"


def test_pictures_are_found_in_results_of_tools() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [image()]}
    assert has_images(said(result), "image")
    prepared = prepare_blocks(said(result))
    assert prepared[0]["content"][0]["content"][0]["source"]["media_type"] == "image/png"
    output = [{"type": "function_call_output", "call_id": "c", "output": [input_image(PNG_URL)]}]
    assert has_images(output, "input_image")
    assert not has_images(said({"type": "text", "text": "x"}), "image")


def test_a_picture_of_a_response_gets_its_true_type() -> None:
    wrong = PNG_URL.replace("png", "gif")
    assert prepare_items(said(input_image(wrong)))[0]["content"][0]["image_url"] == PNG_URL


@pytest.mark.parametrize(
    ("block", "code"),
    [
        (image(type="url", url="http://10.0.0.1/x.png"), "remote_media_disabled"),
        (image(type="url", url="file:///etc/passwd"), "remote_media_disabled"),
        (image(type="file", file_id="f"), "invalid_image"),
        (image(data="@@"), "invalid_image"),
        (image(data=5), "invalid_image"),
        ({"type": "image"}, "invalid_image"),
        (image(data=base64.b64encode(b"GARBAGE!").decode()), "image_format_not_supported"),
        ({"type": "document", "source": {}}, "invalid_body"),
        ({"type": "image_url", "image_url": {"url": PNG_URL}}, "invalid_body"),
        ({"source": {}}, "invalid_body"),
    ],
)
def test_pictures_that_no_engine_gets(block: dict[str, Any], code: str) -> None:
    for blocks in (said(block), said({"type": "tool_result", "content": [block]})):
        with pytest.raises(ProxyError) as caught:
            prepare_blocks(blocks)
        assert caught.value.code == code


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (input_image("https://example.org/x.png"), "remote_media_disabled"),
        (input_image(" file:/etc/passwd"), "remote_media_disabled"),
        (input_image(None, file_id="f"), "invalid_image"),
        (input_image(7), "invalid_image"),
    ],
)
def test_pictures_of_a_response_that_no_engine_gets(part: dict[str, Any], code: str) -> None:
    with pytest.raises(ProxyError) as caught:
        prepare_items(said(part))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/messages", MESSAGES.request(messages=said(image())), "image_not_supported"),
        ("/v1/responses", RESPONSES.request(input=said(input_image(PNG_URL))), "image_not_supported"),
        (
            "/completion",
            COMPLETION.request(prompt={"prompt_string": "x", "multimodal_data": [PNG]}),
            "image_not_supported",
        ),
        ("/v1/messages/count_tokens", MESSAGES.request(messages=said(image())), "image_not_supported"),
        ("/v1/messages", MESSAGES.request(messages=[]), "invalid_body"),
        ("/v1/messages", MESSAGES.request(messages=["hi"]), "invalid_body"),
        ("/v1/messages", MESSAGES.request(system=5), "invalid_body"),
        ("/v1/messages", MESSAGES.request(stop_sequences="x"), "invalid_body"),
        ("/v1/messages", MESSAGES.request(thinking={"type": "maybe"}), "invalid_body"),
        ("/v1/messages", MESSAGES.request(output_config={"format": {}}), "invalid_body"),
        ("/v1/messages", MESSAGES.request(tools=[{"type": "web_search_20250305"}]), "tools_not_supported"),
        ("/v1/messages", MESSAGES.request(stream="yes"), "invalid_body"),
        ("/v1/responses", RESPONSES.request(input=[]), "invalid_body"),
        ("/v1/responses", RESPONSES.request(instructions=5), "invalid_body"),
        ("/v1/responses", RESPONSES.request(previous_response_id="r"), "invalid_body"),
        ("/v1/responses", RESPONSES.request(background=True), "invalid_body"),
        ("/v1/responses", RESPONSES.request(tools=[{"type": "web_search"}]), "tools_not_supported"),
        ("/v1/responses", RESPONSES.request(text={"format": {"type": "xml"}}), "invalid_body"),
        ("/completion", COMPLETION.request(response_fields="content"), "invalid_body"),
        ("/tokenize", {"content": 5}, "invalid_body"),
        ("/detokenize", {"tokens": [1, -1]}, "invalid_body"),
        ("/detokenize", {"tokens": [True]}, "invalid_body"),
    ],
)
async def test_what_is_refused_before_a_model_is_loaded(
    world: World, path: str, body: dict[str, Any], code: str
) -> None:
    call = await world.ask(path, {"model": "smol", **body})
    assert (call.status, call.error()["code"]) == (400, code)
    assert world.fleet.acquired == []


async def test_a_picture_reaches_a_model_that_sees(world: World) -> None:
    world.declare(model("smol", aliases=("gpt",), projector=Path("/p.gguf")))
    world.fleet.vision = True
    world.engine.default = MESSAGES.answer
    call = await world.ask("/v1/messages", MESSAGES.request(messages=said(image())))
    assert call.status == 200
    source = world.engine.calls[0].body["messages"][0]["content"][0]["source"]
    assert source == {"type": "base64", "media_type": "image/png", "data": PNG}


async def test_the_format_of_a_response_goes_under_the_engines_name(world: World) -> None:
    world.engine.default = RESPONSES.answer
    wanted = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
    await world.ask("/v1/responses", RESPONSES.request(text={"format": wanted}))
    sent = world.engine.calls[0].body["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}


LIMITS = {"messages": "max_tokens", "responses": "max_output_tokens", "completion": "n_predict"}


@pytest.mark.parametrize("name", FAMILIES)
async def test_rules_of_the_manifest_hold_under_the_names_of_the_family(world: World, name: str) -> None:
    family: Family = FAMILIES[name]
    live = {
        "request_defaults": {"stop": ["X"]},
        "request_force": {"max_tokens": 7},
        "request_drop": ("seed",),
    }
    world.declare(model("smol", aliases=("gpt",), **live))
    world.engine.default = family.answer
    await world.ask(family.path, family.request(seed=1, top_k=-2))
    sent = world.engine.calls[0].body
    assert sent[LIMITS[name]] == 7
    assert sent["stop_sequences" if name == "messages" else "stop"] == ["X"]
    assert "seed" not in sent
    assert (sent["temperature"], sent["top_k"]) == (0.6, 0)
    assert "stream_options" not in sent


async def test_an_infill_leaves_its_length_to_the_engine(world: World) -> None:
    world.engine.default = COMPLETION.answer
    call = await world.ask("/infill", {"model": "smol", "input_prefix": "a", "input_suffix": "b"})
    assert call.json()["content"] == "Hello"
    assert world.engine.calls[0].path == "/infill"
    assert "n_predict" not in world.engine.calls[0].body


async def test_a_count_sends_what_an_answer_would_take(world: World) -> None:
    async def count(call: Any) -> None:
        await call.json(200, {"input_tokens": 7})

    world.engine.default = count
    call = await world.ask("/m/gpt/v1/messages/count_tokens", {**MESSAGES.request(), "model": "other"})
    assert call.json() == {"input_tokens": 7}
    sent = world.engine.calls[0]
    assert (sent.path, sent.body["model"]) == ("/v1/messages/count_tokens", "smol")
    assert "stream" not in sent.body


@pytest.mark.parametrize(
    ("path", "upstream"),
    [
        ("/embeddings", "/embeddings"),
        ("/embedding", "/embeddings"),
        ("/v1/embeddings", "/v1/embeddings"),
        ("/rerank", "/v1/rerank"),
        ("/v1/reranking", "/v1/rerank"),
        ("/m/gpt/rerank", "/v1/rerank"),
        ("/tokenize?model=gpt", "/tokenize"),
        ("/m/gpt/detokenize", "/detokenize"),
        ("/apply-template", "/apply-template"),
        ("/responses/input_tokens", "/v1/responses/input_tokens"),
    ],
)
async def test_small_calls_go_to_the_route_of_the_same_name(world: World, path: str, upstream: str) -> None:
    async def play(call: Any) -> None:
        await call.json(200, {"ok": True, "model": "smol"})

    world.engine.default = play
    call = await world.ask(path, {"input": "x", "messages": []})
    assert (call.status, call.json()["model"]) == (200, call.json()["model"])
    assert world.engine.calls[0].path == upstream
    assert b"smol" not in call.body or "gpt" not in path


async def test_a_ranking_in_the_form_of_a_list_is_passed_on(world: World) -> None:
    async def play(call: Any) -> None:
        await call.json(200, [{"index": 0, "score": 0.5}])

    world.engine.default = play
    assert (await world.ask("/rerank", {"query": "q", "texts": ["a"]})).json() == [{"index": 0, "score": 0.5}]
