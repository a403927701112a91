"""The page Try over HTTP: its form without script, the routes of its script, and whose key counts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import httpx
import pytest

from framework.dashboard.tryout import whole_answers
from framework.values.instance import ModelView, State
from framework.values.manifest import AccessKey
from framework.values.rate import Rate
from tests.dashboard import samples
from tests.dashboard.client import SAME_ORIGIN, browser, csrf_of, page
from tests.dashboard.fake_system import FakeSystem, make_system, set_access
from tests.dashboard.html import Element, parse
from tests.dashboard.samples import HOSTILE
from tests.proxy.asgi_client import start_call
from tests.proxy.scripted_engine import Call, ScriptedEngine, chunk, closing, finish, hang, piece, role
from tests.support.waiting import eventually

CHAT = "/try/v1/chat/completions"
TOOLS = '[{"type": "function", "function": {"name": "weather"}}]'
ASKED = {"model": "smollm2", "messages": [{"role": "user", "content": "hi"}], "stream": True}


@pytest.fixture
async def engine() -> AsyncIterator[ScriptedEngine]:
    running = ScriptedEngine()
    await running.start()
    yield running
    await running.stop()


def system(engine: ScriptedEngine, *models: ModelView, **fields: Any) -> FakeSystem:
    return make_system(*(models or (samples.model(),)), engine_url=engine.url, **fields)


def key(name: str = "night-shift", role: Any = "view", secret: str = "look", **fields: Any) -> AccessKey:
    return AccessKey(name, sha256(secret.encode()).hexdigest(), dashboard=role, **fields)


async def sign_in(client: httpx.AsyncClient, secret: str = "look") -> None:
    await client.post("/sign-in", data={"key": secret}, headers=SAME_ORIGIN)


async def send(client: httpx.AsyncClient, **fields: str) -> Element:
    """Submit the form as it stands on the page, with these fields changed; the page that comes back."""
    answer = await submit(client, **fields)
    assert answer.status_code == 200, answer.text
    return parse(answer.text)


async def submit(client: httpx.AsyncClient, **fields: str) -> httpx.Response:
    given = {"csrf_token": await csrf_of(client), "model": "smollm2", "do": "send", **fields}
    return await client.post("/try", data=given, headers=SAME_ORIGIN)


def talk_of(tree: Element) -> str:
    return tree.one("input", id="try-talk").attributes["value"]


def said(tree: Element) -> list[str]:
    turns = tree.one(id="turns")
    return [part.text for part in turns.all() if part.attributes.get("data-part") in ("user", "text")]


def part(tree: Element, name: str) -> str:
    return tree.one(id="turns").one(data_part=name).text


async def post(
    client: httpx.AsyncClient, body: object = ASKED, path: str = CHAT, **headers: str
) -> httpx.Response:
    """A request of the page's script."""
    token = {"x-csrf-token": await csrf_of(client)}
    return await client.post(path, json=body, headers={**SAME_ORIGIN, **token, **headers})


def events(text: str) -> list[tuple[str, Any]]:
    """Names and data of the events of a stream, its end mark left out."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if lines.get("data", "[DONE]") != "[DONE]":
            found.append((lines.get("event", ""), json.loads(lines["data"])))
    return found


# The page


async def test_the_page_starts_with_a_model_that_is_loaded(engine: ScriptedEngine) -> None:
    running = system(engine, samples.model("cold", State.STOPPED), samples.model("warm"))
    async with browser(running) as client:
        tree = await page(client, "/try")
    assert [e.attributes["value"] for e in tree.all("input", form="try-form")] == ["warm"]
    assert tree.one("option", value="warm", selected="").text == "warm"


async def test_an_alias_chooses_its_model_and_two_stand_side_by_side(engine: ScriptedEngine) -> None:
    small = samples.model(asked=samples.request(live={"aliases": ("small",)}))
    async with browser(system(engine, small, samples.model("other"))) as client:
        tree = await page(client, "/try?model=small&with=other")
    fields = {e.attributes["name"]: e.attributes["value"] for e in tree.all("input", form="try-form")}
    assert fields == {"model": "smollm2", "with": "other"}


async def test_an_unknown_model_offers_the_nearest_and_the_list_stays(engine: ScriptedEngine) -> None:
    async with browser(system(engine)) as client:
        tree = await page(client, "/try?model=smolm2", 404)
    assert 'Did you mean "smollm2"?' in tree.one(id="try-lanes").text
    assert list(tree.all("option", value="smollm2"))


async def test_without_models_the_page_says_what_to_do(engine: ScriptedEngine) -> None:
    async with browser(make_system()) as client:
        tree = await page(client, "/try")
    assert "Add a table to the manifest" in tree.one("main").text
    assert list(tree.all(id="try-form")) == []


async def test_three_hundred_models_are_searched_by_typing(engine: ScriptedEngine) -> None:
    async with browser(system(engine, *(samples.model(f"m{n}") for n in range(300)))) as client:
        tree = await page(client, "/try?model=m7")
    assert tree.one("input", id="try-model").attributes["list"] == "try-names"
    assert len(list(tree.one("datalist").all("option"))) == 300


async def test_only_models_that_the_key_may_use_are_told(engine: ScriptedEngine) -> None:
    running = system(engine, samples.model(), samples.model("backstage"), access=[key(models=("smollm2",))])
    async with browser(running) as client:
        await sign_in(client)
        assert "backstage" not in (await client.get("/try")).text
        tree = await page(client, "/try?model=backstage", 404)
        assert "that you may use" in tree.one(id="try-lanes").text
        set_access(running, key(models=("none",)))
        assert "may use no model" in (await page(client, "/try")).one("main").text


# The form without script


async def test_without_script_the_finished_answer_stands_on_the_page(engine: ScriptedEngine) -> None:
    running = system(engine)
    async with browser(running) as client:
        tree = await send(client, message="Say\r\nhello.", temperature="0.5", system="Be brief.")
    assert said(tree) == ["Say hello.", "Hello"]
    body = engine.calls[0].body
    assert [m["content"] for m in body["messages"]] == ["Be brief.", "Say\nhello."]
    assert (body["temperature"], body["max_tokens"]) == (0.5, 512)
    numbers = tree.one(id="turns").one(data_part="numbers").text
    assert "2 tokens" in numbers
    assert "4 tokens, 1 accepted (25 %)" in numbers
    assert "curl http://127.0.0.1:8080/v1/chat/completions" in part(tree, "curl")
    assert tree.one("input", id="s-temperature").attributes["value"] == "0.5"
    assert [record.route for record in running.records] == ["/v1/chat/completions"]


async def test_a_conversation_goes_on_is_repeated_and_edited_without_script(engine: ScriptedEngine) -> None:
    async with browser(system(engine)) as client:
        first = await send(client, message="One")
        second = await send(client, message="Two", conversation=talk_of(first))
        assert said(second) == ["One", "Hello", "Two", "Hello"]
        again = await send(client, do="regenerate", message="unsent", conversation=talk_of(second))
        assert said(again) == ["One", "Hello", "Two", "Hello"]
        assert [m["content"] for m in engine.calls[-1].body["messages"]] == ["One", "Hello", "Two"]
        asked = len(engine.calls)
        edited = await send(client, do="edit", conversation=talk_of(again))
        assert said(edited) == ["One", "Hello"]
        assert edited.one("textarea", id="try-message").text == "Two"
        assert len(engine.calls) == asked


async def test_two_models_answer_one_message_at_once(engine: ScriptedEngine) -> None:
    running = system(engine, samples.model(), samples.model("other"))
    running.leases.gate.clear()
    async with browser(running) as client:
        sending = asyncio.create_task(send(client, message="Hi", **{"with": "other"}))
        await eventually(lambda: running.leases.waiting == 2)
        running.leases.gate.set()
        tree = await sending
    labels = [article.attributes["aria-label"] for article in tree.one(id="turns").all("article")]
    assert labels == ["Answer of smollm2", "Answer of other"]


async def test_reasoning_and_tool_calls_are_shown(engine: ScriptedEngine) -> None:
    async def think_and_call(call: Call) -> None:
        call_piece = {"index": 0, "id": "1", "function": {"name": "weather", "arguments": '{"in": "Oslo"}'}}
        await call.start_stream()
        for delta in ({"reasoning_content": "Hm, weather."}, {"tool_calls": [call_piece]}):
            await call.events(chunk(choices=[{"index": 0, "delta": delta, "finish_reason": None}]))
        await call.events(finish("tool_calls"), closing())
        await call.end()

    engine.default = think_and_call
    async with browser(system(engine)) as client:
        tree = await send(
            client, message="Weather?", tools='[{"type": "function", "function": {"name": "weather"}}]'
        )
    assert part(tree, "thinking-text") == "Hm, weather."
    assert (part(tree, "call-name"), part(tree, "call-arguments")) == ("weather", '{"in": "Oslo"}')
    assert "Nothing here runs it" in part(tree, "note")


@pytest.mark.parametrize("text", HOSTILE)
async def test_whatever_a_model_says_stays_text(engine: ScriptedEngine, text: str) -> None:
    async def say(call: Call) -> None:
        await call.start_stream()
        await call.events(role(), piece(text), finish(), closing())
        await call.end()

    engine.default = say
    async with browser(system(engine)) as client:
        tree = await send(client, message=text)
    assert [e for e in tree.all("script") if "src" not in e.attributes] == []
    assert list(tree.all("img")) == []


async def test_an_error_has_its_code_sentence_and_remedy(engine: ScriptedEngine) -> None:
    async def refuse(call: Call) -> None:
        await call.json(
            400, {"error": {"code": 400, "message": "bad tools", "type": "invalid_request_error"}}
        )

    engine.default = refuse
    async with browser(system(engine)) as client:
        tree = await send(client, message="Hi")
    assert "bad tools" in part(tree, "trouble-message")
    assert part(tree, "trouble-code")
    assert part(tree, "trouble-remedy")


async def test_settings_that_make_no_sense_ask_nothing_and_are_kept(engine: ScriptedEngine) -> None:
    async with browser(system(engine)) as client:
        answer = await submit(client, message="Hi there", temperature="hot")
    tree = parse(answer.text)
    assert answer.status_code == 400
    assert "a number from 0 to 5" in tree.one(id="s-temperature-fault").text
    assert tree.one("textarea", id="try-message").text == "Hi there"
    assert engine.calls == []


async def test_a_model_that_cannot_chat_says_so_and_is_not_asked(engine: ScriptedEngine) -> None:
    vectors = samples.model("vectors", asked=samples.request("vectors", extra_args=("--embeddings",)))
    async with browser(system(engine, vectors)) as client:
        assert "cannot chat" in (await page(client, "/try?model=vectors")).one(id="try-lanes").text
        tree = await send(client, model="vectors", message="Hi")
    assert part(tree, "trouble-code") == "not_supported"
    assert engine.calls == []


async def test_an_answer_that_takes_too_long_ends_and_frees_its_engine(
    engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_answers, "ANSWER_LIMIT_S", 0.05)
    engine.default = hang
    running = system(engine)
    async with browser(running) as client:
        tree = await send(client, message="Hi")
    assert "did not come within" in part(tree, "trouble-message")
    assert running.leases.open_leases == 0
    await eventually(lambda: engine.calls[0].closed.is_set())


async def test_a_form_that_is_too_large_is_refused(engine: ScriptedEngine) -> None:
    async with browser(system(engine)) as client:
        answer = await submit(client, message="x" * (3 * 2**20))
    assert answer.status_code == 413


# The routes of the script


async def test_a_stream_ends_with_what_was_measured_at_its_end(
    engine: ScriptedEngine,
) -> None:
    running = system(engine)
    async with browser(running) as client:
        answer = await post(client)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    found = events(answer.text)
    text = "".join(c["delta"].get("content") or "" for _, data in found for c in data.get("choices", ()))
    name, measured = found[-1]
    assert (text, name) == ("Hello", "measured")
    assert (measured["generated_tokens"], measured["drafted"], measured["status"]) == (2, 4, 200)
    assert dict(measured["numbers"])["Drafts"] == "4 tokens, 1 accepted (25 %)"
    assert measured["queue_s"] >= 0
    assert measured["id"] == answer.headers["x-request-id"]


async def test_texts_are_continued_over_their_own_route(engine: ScriptedEngine) -> None:
    async with browser(system(engine)) as client:
        answer = await post(client, {"model": "smollm2", "prompt": "Once"}, "/try/v1/completions")
    assert answer.status_code == 200
    assert engine.calls[0].path == "/v1/completions"


async def test_a_cookie_never_reaches_an_engine(engine: ScriptedEngine) -> None:
    async with browser(system(engine)) as client:
        await post(client, **{"x-api-key-of-mine": "secret"})
    assert not {"cookie", "x-csrf-token", "x-api-key-of-mine", "origin"} & set(engine.calls[0].headers)


async def test_the_limits_and_the_record_are_those_of_the_signed_in_key(engine: ScriptedEngine) -> None:
    running = system(engine, access=[key(rate=Rate(1, 60.0))])
    async with browser(running) as client:
        await sign_in(client)
        assert (await post(client)).status_code == 200
        refused = await post(client)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (429, "rate_limited")
    assert int(refused.headers["retry-after"]) > 1
    assert [record.key for record in running.records] == ["night-shift", "night-shift"]
    assert running.leases.acquired == [("smollm2", "night-shift")]


async def test_a_key_tries_what_it_may_use_and_nothing_else(engine: ScriptedEngine) -> None:
    running = system(engine, samples.model(), samples.model("backstage"), access=[key(models=("smollm2",))])
    async with browser(running) as client:
        await sign_in(client)
        refused = await post(client, {**ASKED, "model": "backstage"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "model_not_allowed")
        assert "that you may use" in (await submit(client, model="backstage", message="Hi")).text
    assert running.leases.acquired == []


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        pytest.param({"x-csrf-token": "guessed"}, 403, "csrf_token_invalid", id="wrong-token"),
        pytest.param({"sec-fetch-site": "cross-site"}, 403, "origin_not_allowed", id="page-elsewhere"),
        pytest.param({"cookie": "paddock_8080=gone"}, 401, "key_missing", id="session-that-ended"),
    ],
)
async def test_a_refusal_of_the_script_is_json(
    engine: ScriptedEngine, headers: dict[str, str], status: int, code: str
) -> None:
    running = system(engine, access=[key()])
    async with browser(running) as client:
        await sign_in(client)
        answer = await post(client, **headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert engine.calls == []


async def test_whoever_leaves_frees_the_engine_at_once(engine: ScriptedEngine) -> None:
    async def stream_for_ever(call: Call) -> None:
        await call.start_stream()
        await call.events(piece("a"))
        await call.closed.wait()

    engine.default = stream_for_ever
    running = system(engine)
    async with browser(running) as client:
        token = await csrf_of(client)
        cookie = "; ".join(f"{one.name}={one.value}" for one in client.cookies.jar)
    headers = {**SAME_ORIGIN, "x-csrf-token": token, "cookie": cookie, "host": "127.0.0.1:8080"}
    call = start_call(running.app, CHAT, ASKED, headers=headers)
    await call.until(b'"a"')
    call.gone.set()
    await call.finished()
    await eventually(lambda: engine.calls[0].closed.is_set())
    assert running.leases.open_leases == 0
    assert running.records[-1].status == 499


async def test_the_state_of_a_model_is_live_on_the_page(engine: ScriptedEngine) -> None:
    running = system(engine, samples.model(state=State.STOPPED))
    async with browser(running) as client:
        tree = await page(client, "/try")
        assert "the first message loads it" in tree.one(id="try-state-0").text
        assert tree.one(id="live").attributes["sse-connect"].startswith("/live?page=try&model=smollm2")
        running.fleet.put(replace(samples.loading(), request=samples.request()))
        tree = await page(client, "/try?model=smollm2")
    assert list(tree.one(id="try-state-0").all("progress"))
