"""Completions, embeddings, the model list, health, and paths that lead nowhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from framework.proxy.endpoints import find_endpoint
from framework.proxy.model_list import room_of
from framework.runtime.lease import LeaseRefused
from framework.values.manifest import AccessKey
from framework.values.reason import Reason
from tests.dashboard import samples
from tests.proxy.scripted_engine import USAGE, Call
from tests.proxy.world import HELLO, World, model

PROMPT = {"model": "gpt", "prompt": "Once"}
SECRET = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"


def text(value: str, **fields: Any) -> dict[str, Any]:
    """A chunk of a plain completion, as the engine writes it."""
    choice = {"text": value, "index": 0, "logprobs": None, "finish_reason": None, **fields}
    return {"choices": [choice], "model": "smol", "object": "text_completion", "id": "c1"}


async def answer_text(call: Call) -> None:
    await call.start_stream()
    await call.events(text("a"), text("b"), {**text("", finish_reason="length"), "usage": USAGE})
    await call.end()


async def test_a_completion_is_answered_as_one_object(world: World) -> None:
    world.engine.default = answer_text
    answer = (await world.ask("/v1/completions", PROMPT)).json()
    assert answer == {
        "id": "c1",
        "object": "text_completion",
        "model": "gpt",
        "choices": [{"index": 0, "text": "ab", "finish_reason": "length"}],
        "usage": USAGE,
    }


async def test_a_completion_is_streamed(world: World) -> None:
    world.engine.default = answer_text
    call = await world.ask("/v1/completions", {**PROMPT, "stream": True})
    assert [event["choices"][0]["text"] for event in call.events()] == ["a", "b", ""]
    assert {event["model"] for event in call.events()} == {"gpt"}
    assert call.payloads()[-1] == "[DONE]"


async def test_embeddings_are_forwarded_whole(world: World) -> None:
    async def play(call: Call) -> None:
        await call.json(
            200, {"object": "list", "model": "smol", "data": [{"embedding": [0.5]}], "usage": USAGE}
        )

    world.engine.default = play
    call = await world.ask("/v1/embeddings", {"model": "gpt", "input": "x"})
    assert call.json() == {
        "object": "list",
        "model": "gpt",
        "data": [{"embedding": [0.5]}],
        "usage": USAGE,
    }
    assert world.engine.calls[0].body == {"model": "smol", "input": "x"}
    assert world.records[0].prompt_tokens == 3


async def test_embeddings_of_a_chat_model_are_not_supported(world: World) -> None:
    async def play(call: Call) -> None:
        message = "This server does not support embeddings. Start it with `--embeddings`"
        await call.json(501, {"error": {"code": 501, "message": message, "type": "not_supported_error"}})

    world.engine.default = play
    call = await world.ask("/v1/embeddings", {"model": "smol", "input": "x"})
    assert (call.status, call.error()["code"], call.error()["type"]) == (
        501,
        "not_supported",
        "not_supported_error",
    )
    assert call.error()["message"].startswith("Model smol does not support this kind of request.")


@pytest.mark.parametrize("answer", [b"[]", b"{", b""], ids=["list", "broken", "empty"])
async def test_embeddings_that_are_no_object_are_refused(world: World, answer: bytes) -> None:
    async def play(call: Call) -> None:
        await call.answer(200, answer, "application/json")

    world.engine.default = play
    call = await world.ask("/v1/embeddings", {"model": "smol", "input": "x"})
    assert (call.status, call.error()["code"]) == (502, "upstream_protocol_error")


async def test_an_answer_above_the_limit_is_given_up(world: World) -> None:
    world.limit(answer_limit_bytes=1000)

    async def play(call: Call) -> None:
        await call.answer(200, b'{"x":"' + b"x" * 5000 + b'"}', "application/json")

    world.engine.default = play
    call = await world.ask("/v1/embeddings", {"model": "smol", "input": "x"})
    assert call.error()["code"] == "upstream_protocol_error"


async def test_the_model_list_tells_names_and_states_and_wakes_nothing(world: World) -> None:
    world.declare(model("smol", aliases=("gpt",), display_name="Smol"), model("other"))
    call = await world.ask("/v1/models", method="GET")
    first, second = call.json()["data"]
    assert first == {
        "id": "smol",
        "object": "model",
        "created": 1767312000,
        "owned_by": "paddock",
        "aliases": ["gpt"],
        "display_name": "Smol",
        "status": "stopped",
        "meta": {"n_ctx": None, "slots": 4, "vision": False, "reasoning": None},
    }
    assert second["id"] == "other"
    assert world.fleet.acquired == []


async def test_the_model_list_has_a_twin_without_version(world: World) -> None:
    versioned = await world.ask("/v1/models", method="GET")
    assert (await world.ask("/models", method="GET")).json() == versioned.json()


async def test_one_model_is_shown_by_its_alias(world: World) -> None:
    call = await world.ask("/v1/models/gpt", method="GET")
    assert (call.json()["id"], call.json()["status"]) == ("smol", "stopped")


async def test_an_unknown_model_is_not_shown(world: World) -> None:
    call = await world.ask("/v1/models/smoll", method="GET")
    assert (call.status, call.error()["code"]) == (404, "model_not_found")


def test_context_and_slots_are_of_the_same_start() -> None:
    started = samples.request(n_ctx=8192, slots=8)
    running = samples.instance(
        started, plan=samples.plan(started), result=samples.result(context=8192, slots=8)
    )
    edited = samples.model(asked=samples.request(n_ctx=512, slots=1), instances=(running,), replacing=True)
    assert room_of(edited) == (8192, 8)
    assert room_of(replace(edited, instances=())) == (512, 1)


async def test_models_of_other_keys_are_not_listed(world: World) -> None:
    key = AccessKey("laptop", SECRET, ("smol",))
    world.declare(model("smol"), model("other"), access=(key,))
    call = await world.ask("/v1/models", method="GET", headers={"x-api-key": "secret"})
    assert [entry["id"] for entry in call.json()["data"]] == ["smol"]
    refused = await world.ask("/v1/models/other", method="GET", headers={"x-api-key": "secret"})
    assert refused.status == 403


async def test_health_needs_no_key(world: World) -> None:
    world.declare(model("smol"), access=(AccessKey("laptop", SECRET),))
    call = await world.ask("/health", method="GET")
    assert (call.status, call.json()) == (200, {"status": "ok"})


async def test_everything_else_needs_one(world: World) -> None:
    world.declare(model("smol"), access=(AccessKey("laptop", SECRET),))
    for path, method in (
        ("/v1/models", "GET"),
        ("/v1/chat/completions", "POST"),
        ("/m/smol/v1/embeddings", "POST"),
    ):
        call = await world.ask(path, HELLO if method == "POST" else None, method=method)
        assert (call.status, call.error()["code"]) == (401, "key_missing")
    assert world.fleet.acquired == []


async def test_the_key_of_a_request_is_told_to_the_fleet_and_recorded_by_name(world: World) -> None:
    world.declare(model("smol"), access=(AccessKey("laptop", SECRET),))
    await world.ask("/v1/chat/completions", HELLO, headers={"authorization": "Bearer secret"})
    assert world.fleet.acquired == [("smol", "laptop")]
    assert world.records[0].key == "laptop"


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1", "/v1/", "/m/", "/m/smol", "/m//v1/completions"])
async def test_unknown_paths_get_the_envelope(world: World, path: str) -> None:
    call = await world.ask(path, HELLO)
    assert (call.status, call.error()["code"]) == (404, "route_not_found")
    assert call.error()["request_id"] == call.headers["x-request-id"]


async def test_a_base_url_with_a_v1_too_many_is_told_what_to_leave_out(world: World) -> None:
    call = await world.ask("/v1/v1/messages", HELLO)
    assert call.status == 404
    assert "Leave /v1 out of the client's base URL" in call.error()["message"]


async def test_a_wrong_method_is_told_the_right_one(world: World) -> None:
    call = await world.ask("/v1/chat/completions", method="GET")
    assert (call.status, call.error()["code"]) == (405, "method_not_allowed")
    assert call.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/m/smol/v1/chat/completions", {**HELLO, "model": "nobody"}),
        ("/m/smol/chat/completions?model=nobody", HELLO),
        ("/v1/chat/completions?model=smol", {**HELLO, "model": "nobody"}),
        ("/chat/completions", HELLO),
    ],
    ids=["path-before-body", "path-before-query", "query-before-body", "no-version"],
)
async def test_ways_to_name_a_model(world: World, path: str, body: Any) -> None:
    world.declare(model("smol"), model("other"))
    assert (await world.ask(path, body)).status == 200
    assert world.fleet.acquired == [("smol", None)]


def test_names_in_paths_may_hold_slashes() -> None:
    endpoint, name = find_endpoint("/m/org/model:Q4/v1/completions")
    assert (endpoint.route, name) == ("/v1/completions", "org/model:Q4")


async def test_every_answer_has_an_id_of_its_own(world: World) -> None:
    ids = {(await world.ask("/health", method="GET")).headers["x-request-id"] for _ in range(3)}
    ids.add((await world.chat(stream=True)).headers["x-request-id"])
    assert len(ids) == 4


async def test_an_id_of_the_client_is_not_taken_over(world: World) -> None:
    call = await world.ask("/health", method="GET", headers={"x-request-id": "mine"})
    assert call.headers["x-request-id"] != "mine"


async def test_a_fault_of_ours_is_logged_and_not_shown(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(model_id: str, *, key: str | None) -> Any:
        raise RuntimeError("secret detail")

    world.fleet.acquire = broken  # type: ignore[method-assign]
    call = await world.chat()
    assert (call.status, call.error()["code"]) == (500, "internal_error")
    assert b"secret detail" not in call.body
    assert "secret detail" in caplog.text
    assert call.headers["x-request-id"] in caplog.text


@pytest.mark.parametrize(("models", "told"), [(("*",), True), (("smol",), False)], ids=["all", "one"])
async def test_only_who_may_use_every_model_is_told_which_are_in_the_way(
    world: World, models: tuple[str, ...], told: bool
) -> None:
    reason = Reason("does_not_fit", "hidden holds 3.0 GiB of CUDA0.", "Unload it.", "error")
    world.declare(model("smol"), model("hidden"), access=(AccessKey("laptop", SECRET, models),))
    world.fleet.refusal = LeaseRefused("no_memory", reason.message, retry_after_s=5.0, reason=reason)
    call = await world.ask(
        "/v1/chat/completions", {**HELLO, "model": "smol"}, headers={"x-api-key": "secret"}
    )
    assert (call.status, call.error()["code"], call.headers["retry-after"]) == (503, "no_memory", "5")
    assert (b"hidden" in call.body) is told


@pytest.mark.parametrize(
    ("route", "body", "field"),
    [
        pytest.param("/v1/embeddings", {"model": "gpt", "content": "x"}, "input", id="the-other-form"),
        pytest.param(
            "/v1/rerank", {"model": "gpt", "query": "", "documents": [""]}, "query", id="no-question"
        ),
    ],
)
async def test_a_whole_call_without_what_it_asks_about_reaches_no_engine(
    world: World, route: str, body: dict[str, Any], field: str
) -> None:
    answer = await world.ask(route, body)
    assert answer.status == 400
    assert (answer.json()["error"]["code"], answer.json()["error"]["param"]) == ("invalid_body", field)
    assert world.engine.calls == []
