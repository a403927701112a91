"""What the page Try is made of: conversations, settings, requests, numbers, what a model can be asked."""

from __future__ import annotations

import ast
import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from framework.api.errors import ApiError
from framework.dashboard.tryout.lanes import ability_of, lane_state
from framework.dashboard.tryout.numbers import numbers_of, short_time
from framework.dashboard.tryout.remedies import REMEDIES, trouble_of
from framework.dashboard.tryout.request_texts import request_text
from framework.dashboard.tryout.settings import FIELDS, body_of, read_settings
from framework.dashboard.tryout.talk import (
    MOST_TURNS,
    Answer,
    Trouble,
    Turn,
    messages_of,
    read_talk,
    talk_json,
)
from framework.models.gguf_fields import GgufHeader
from framework.proxy.errors import STATUS
from framework.proxy.records import ActiveRequest
from framework.values.instance import State
from framework.values.pool import PoolView
from framework.values.request import PoolLimits
from tests.dashboard import pool_samples, samples
from tests.dashboard.samples import HOSTILE
from tests.dashboard.try_samples import BASE, CHATS, EMBEDS, FULL, TALK, THINKS

URL = "http://127.0.0.1:8080"
NO_TROUBLE = Answer("smollm2", text="Bay.")


def test_a_conversation_survives_its_way_through_a_form() -> None:
    assert read_talk(talk_json(TALK)) == TALK


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_was_said_survives_too(text: str) -> None:
    answer = replace(FULL, model=text, text=text, thinking=text, numbers=((text, text),))
    assert read_talk(talk_json((Turn(text, (answer,)),))) == (Turn(text, (answer,)),)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="no-json"),
        pytest.param("7", id="a-number"),
        pytest.param('{"a": 1}', id="an-object"),
        pytest.param("[1]", id="turns-of-numbers"),
        pytest.param('[{"user": 1, "answers": []}]', id="a-message-that-is-no-text"),
        pytest.param('[{"user": "a", "answers": [{}]}]', id="an-answer-of-nothing"),
        pytest.param('[{"user": "a", "answers": 3}]', id="answers-that-are-none"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('[{"user": "\\ud800", "answers": []}]', id="half-a-character"),
        pytest.param(json.dumps([{"user": "a", "answers": []}] * (MOST_TURNS + 1)), id="too-long"),
    ],
)
def test_a_conversation_that_no_page_wrote_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as caught:
        read_talk(text)
    assert (caught.value.status, caught.value.code) == (400, "invalid_body")
    assert "Begin a new one" in caught.value.message


def test_each_model_is_told_its_own_answers() -> None:
    talk = (Turn("Colour?", (NO_TROUBLE, Answer("big", text="Grey."))),)
    assert [m["content"] for m in messages_of(talk, 0)] == ["Colour?", "Bay."]
    assert [m["content"] for m in messages_of(talk, 1)] == ["Colour?", "Grey."]


def test_a_model_that_comes_later_goes_on_from_the_first_ones_answers() -> None:
    assert [m["content"] for m in messages_of((Turn("Colour?", (NO_TROUBLE,)),), 1)] == ["Colour?", "Bay."]


def test_a_turn_that_came_to_nothing_is_left_out_so_that_roles_alternate() -> None:
    failed = Answer("smollm2", trouble=Trouble("queue_full", "Full.", "Wait."))
    talk = (Turn("One?", (failed,)), Turn("Two?", (NO_TROUBLE,)))
    assert [m["role"] for m in messages_of(talk, 0)] == ["user", "assistant"]
    assert messages_of(talk, 0)[0]["content"] == "Two?"


def test_what_is_left_empty_is_not_sent() -> None:
    body = body_of("smollm2", "chat", 0, (), "Hi", read_settings({}), "")
    assert body == {"model": "smollm2", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 512}


def test_everything_that_was_set_is_sent() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    typed = {
        "system": "Be brief.",
        "temperature": "0.5",
        "top_p": " 1 ",
        "max_tokens": "20",
        "seed": "7",
        "format": "json_schema",
        "schema": '{"type": "object"}',
        "tools": json.dumps(tools),
    }
    assert set(typed) == set(FIELDS)
    asked = read_settings(typed)
    assert asked.faults == {}
    body = body_of("smollm2", "chat", 0, (Turn("One?", (NO_TROUBLE,)),), "Hi", asked, "low")
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    rest = {name: body[name] for name in ("temperature", "top_p", "max_tokens", "seed", "reasoning_effort")}
    assert rest == {"temperature": 0.5, "top_p": 1.0, "max_tokens": 20, "seed": 7, "reasoning_effort": "low"}
    assert body["tools"] == tools


def test_a_text_is_continued_with_nothing_around_it() -> None:
    asked = read_settings({"system": "Be brief.", "format": "json_object", "tools": "[{}]", "seed": "1"})
    body = body_of("base", "text", 0, TALK, "Once upon a time", asked, "low")
    assert body == {"model": "base", "prompt": "Once upon a time", "seed": 1, "max_tokens": 512}


@pytest.mark.parametrize(
    ("name", "typed", "allowed"),
    [
        pytest.param("temperature", "hot", "a number from 0 to 5", id="a-word"),
        pytest.param("temperature", "nan", "a number from 0 to 5", id="nan"),
        pytest.param("temperature", "-1", "a number from 0 to 5", id="negative"),
        pytest.param("top_p", "1.5", "a number from 0 to 1", id="beyond-one"),
        pytest.param("max_tokens", "0", "a whole number from 1 to 4,096", id="no-tokens"),
        pytest.param("max_tokens", "99999999999", "a whole number from 1 to 4,096", id="endless"),
        pytest.param("seed", "\u00b2", "a whole number from 0", id="another-digit"),
        pytest.param("schema", "[1]", "a JSON Schema", id="a-list-as-schema"),
        pytest.param("tools", "{}", "a list of tools", id="an-object-as-tools"),
        pytest.param("tools", "[" * 100_000, "a list of tools", id="deep"),
    ],
)
def test_a_setting_that_makes_no_sense_is_told_with_what_does(name: str, typed: str, allowed: str) -> None:
    faults = read_settings({name: typed}).faults
    assert list(faults) == [name]
    assert allowed in faults[name]
    assert len(faults[name]) < 200


def test_an_answer_of_a_schema_needs_one() -> None:
    assert "schema" in read_settings({"format": "json_schema"}).faults


@pytest.mark.parametrize("text", [*HOSTILE, "it's \\ 'quoted' $(rm -rf) `x`", "snow \u2603 \U0001f40e\nline"])
@pytest.mark.parametrize("wants_key", [True, False], ids=["key", "open"])
def test_the_same_request_goes_out_elsewhere(text: str, wants_key: bool) -> None:
    body = {"model": text, "messages": [{"role": "user", "content": text}]}
    said = request_text(URL, "/v1/chat/completions", body, wants_key=wants_key)
    words = shlex.split(said.curl.replace(" \\\n  -H", " -H"))
    assert words[1] == f"{URL}/v1/chat/completions"
    assert json.loads(words[words.index("-d") + 1]) == body
    assert ("Authorization: Bearer $PADDOCK_KEY" in words) is wants_key
    literals = [n.value for n in ast.walk(ast.parse(said.python)) if isinstance(n, ast.Constant)]
    assert body in [json.loads(one) for one in literals if isinstance(one, str) and one.startswith("{")]
    assert f"{URL}/v1" in literals


def test_a_key_is_never_in_a_request_that_is_shown() -> None:
    said = request_text(URL, "/v1/completions", {"model": "m", "prompt": "p"}, wants_key=True)
    assert 'os.environ["PADDOCK_KEY"]' in said.python
    assert "client.completions.create" in said.python


def numbers(timings: dict[str, Any], **fields: Any) -> dict[str, str]:
    record = ActiveRequest("req-1", samples.NOW, "/v1/chat/completions", 0.0).record(200, 2.25)
    return dict(numbers_of(replace(record, **fields), timings))


def test_times_speeds_and_drafts_have_their_units() -> None:
    found = numbers(
        {"prompt_per_second": 210.04, "prompt_n": 4, "predicted_per_second": 55.12, "predicted_n": 40},
        queue_s=0.0021,
        first_token_s=0.084,
        prompt_tokens=12,
        cached_tokens=8,
        generated_tokens=40,
        drafted=30,
        accepted=20,
    )
    assert found == {
        "Queue": "2 ms",
        "First token": "84 ms",
        "Prompt": "12 tokens, 8 of them cached, 210.0 tokens/s",
        "Answer": "40 tokens, 55.1 tokens/s",
        "Drafts": "30 tokens, 20 accepted (67 %)",
        "Total": "2.2 s",
    }


@pytest.mark.parametrize("speed", [None, "fast", float("nan"), float("inf"), -1.0, 0, 1e300])
def test_a_speed_that_is_none_is_not_told(speed: object) -> None:
    found = numbers({"predicted_per_second": speed, "predicted_n": 40}, generated_tokens=40)
    assert found["Answer"] == "40 tokens"


def test_nothing_measured_is_nothing_told() -> None:
    assert list(numbers({})) == ["Queue", "Total"]
    assert short_time(0.9999) == "1 s"


@pytest.mark.parametrize(
    ("header", "fields", "kind", "efforts"),
    [
        pytest.param(CHATS, {}, "chat", ["none", "low", "high"], id="levels"),
        pytest.param(THINKS, {}, "chat", ["none", "high"], id="a-switch"),
        pytest.param(BASE, {}, "text", [], id="no-template"),
        pytest.param(BASE, {"template": "{{ messages }}"}, "chat", [], id="a-template-of-the-manifest"),
        pytest.param(GgufHeader("llama", template_bytes=9_000_000), {}, "chat", [], id="a-huge-template"),
        pytest.param(EMBEDS, {}, "none", [], id="embeddings"),
        pytest.param(CHATS, {"extra_args": ("--reranking",)}, "none", [], id="flags-of-a-ranker"),
        pytest.param(None, {}, "chat", [], id="not-on-this-machine-yet"),
    ],
)
def test_what_a_model_can_be_asked(
    header: GgufHeader | None, fields: dict[str, Any], kind: str, efforts: list[str]
) -> None:
    found = ability_of(samples.request(**fields), header)
    assert (found.kind, [value for value, _ in found.efforts]) == (kind, efforts)
    assert bool(found.cannot) == (kind == "none")


def outlook(state: State, *pools: PoolView, **fields: Any) -> str:
    return " ".join(lane_state(0, samples.model("idle", state, **fields), pools).outlook)


def test_a_model_that_is_ready_needs_no_words() -> None:
    assert outlook(State.READY) == ""


def test_a_model_that_will_load_says_who_makes_room() -> None:
    pool = pool_samples.pool(
        limits=PoolLimits(),
        residents=(pool_samples.resident("old"), pool_samples.resident("older")),
        next_to_leave=("older.0@1", "old.0@1"),
    )
    text = outlook(State.STOPPED, pool)
    assert "the first message loads it" in text
    assert "If memory is short, older makes room first, then old." in text


def test_a_model_that_nobody_makes_room_for_says_so() -> None:
    pool = pool_samples.pool(
        limits=PoolLimits(), residents=(pool_samples.resident("pinned"),), next_to_leave=()
    )
    assert "nothing makes room" in outlook(State.STOPPED, pool)


def test_a_model_that_no_message_loads_says_so() -> None:
    assert "unloaded by command" in outlook(State.STOPPED, stopped_by_command=True)
    manual = samples.request("idle", live={"load": "manual"})
    assert 'load = "manual"' in outlook(State.STOPPED, asked=manual)


def test_every_error_of_the_endpoint_has_its_remedy() -> None:
    # What only requests with pictures, sound or other routes can meet.
    elsewhere = {code for code in STATUS if code.startswith(("image", "audio", "remote", "transcription"))}
    elsewhere |= {"invalid_image", "count_needs_text", "tokenizer_failed", "request_not_found"}
    elsewhere |= {"route_not_found", "method_not_allowed", "unsupported_media_type"}
    # The engine's own words say what they can.
    elsewhere |= {"upstream_error", "upstream_protocol_error", "model_required"}
    elsewhere |= {"host_not_allowed", "origin_not_allowed"}
    assert set(STATUS) - elsewhere - set(REMEDIES) == set()


def test_the_reason_of_an_error_knows_more_than_its_code() -> None:
    error = {
        "code": "no_memory",
        "message": "No room.",
        "reason": {"code": "does_not_fit", "remedy": "Unload `big`."},
    }
    trouble = trouble_of(error, "5")
    assert trouble.remedy == "Unload `big`. It may work again in 5 s."
    assert (trouble.code, trouble.reason) == ("no_memory", "does_not_fit")
    assert trouble_of({}, None).code == "internal_error"
