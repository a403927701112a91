"""Request fields: types, ranges, names, defaults."""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from framework.nativeserver import fields
from framework.nativeserver.constraint_fields import MAX_STOP_BYTES, read_grammar
from framework.nativeserver.errors import ApiError
from framework.nativeserver.fields import read_generation, read_generation_off_loop, read_request
from tests.nativeserver.generation_world import SPECIAL, SPECIAL_ID, World, generation_world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with generation_world() as made:
        yield made


def refusal(world: World, body: dict[str, Any]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        read_generation(body, world.services)
    assert caught.value.status == 400
    return caught.value


async def test_an_empty_body_has_the_defaults_of_the_core(world: World) -> None:
    assert read_generation({}, world.services) == world.bridge.module.GenerationParams()


@pytest.mark.parametrize("name", [field.names[0] for field in fields.FIELDS])
async def test_null_is_no_value(world: World, name: str) -> None:
    assert read_generation({name: None}, world.services) == read_generation({}, world.services)


async def test_every_plain_field_reaches_the_core(world: World) -> None:
    body = {
        "top_k": 7,
        "temperature": 0,
        "n_keep": -1,
        "cache_prompt": False,
        "ignore_eos": True,
        "n_indent": 2,
    }
    params = read_generation(body, world.services)
    assert (params.sampling.top_k, params.sampling.temperature, params.sampling.ignore_eos) == (7, 0.0, True)
    assert (params.n_keep, params.cache_prompt, params.n_indent) == (-1, False, 2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param({"top_k": "40"}, "Field 'top_k': type must be number, but is string", id="text"),
        pytest.param(
            {"temperature": True}, "Field 'temperature': type must be number, but is boolean", id="bool"
        ),
        pytest.param({"stream": 1}, "Field 'stream': type must be boolean, but is number", id="number"),
        pytest.param({"grammar": 5}, "Field 'grammar': type must be string, but is number", id="grammar"),
        pytest.param({"top_k": 1.5}, "Field 'top_k': must be a whole number, but got 1.5", id="fraction"),
        pytest.param(
            {"n_predict": -2},
            "Field 'n_predict': value must be between -1 and 2147483647, but got -2",
            id="below",
        ),
        pytest.param(
            {"max_tokens": 2**40},
            f"Field 'max_tokens': value must be between -1 and 2147483647, but got {2**40}",
            id="the name that was used",
        ),
        pytest.param(
            {"adaptive_decay": 1.5},
            "Field 'adaptive_decay': value must be between 0 and 0.99, but got 1.5",
            id="above",
        ),
        pytest.param(
            {"repeat_penalty": math.inf}, "Field 'repeat_penalty': must be a finite number", id="infinite"
        ),
        pytest.param({"stop": 5}, "Field 'stop': type must be string or array, but is number", id="stop"),
        pytest.param(
            {"stop": [1]}, "Field 'stop': type must be array of strings, but is number", id="stop entry"
        ),
        pytest.param(
            {"speculative": 1}, "Field 'speculative': type must be object, but is number", id="nested"
        ),
    ],
)
async def test_a_wrong_value_is_named(world: World, body: dict[str, Any], message: str) -> None:
    assert refusal(world, body).message == message


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("temperature", -1, 0.0),
        ("top_k", -5, 0),
        ("top_k", 1e10, 2**31 - 1),
        ("top_p", 1.1, 1.0),
        ("min_p", -0.1, 0.0),
        ("xtc_threshold", 2, 1.0),
        ("mirostat", 3, 2),
        ("dry_base", 0.5, 1.75),
        ("repeat_last_n", -1, -1),
        ("dry_penalty_last_n", -1, -1),
        ("seed", -1, -1),
        ("seed", -2, 2**32 - 2),
        ("seed", 2**32, 0),
        ("seed", 40.0, 40),
    ],
)
async def test_numbers_are_brought_into_range_as_llama_server_does(
    world: World, name: str, value: float, expected: float
) -> None:
    assert getattr(read_generation({name: value}, world.services).sampling, name) == expected


@pytest.mark.parametrize("name", ["repeat_last_n", "dry_penalty_last_n"])
async def test_a_window_below_the_whole_context_is_refused(world: World, name: str) -> None:
    assert name in refusal(world, {name: -2}).message


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"max_tokens": 3}, 3),
        ({"max_completion_tokens": 4, "max_tokens": 3}, 4),
        ({"n_predict": 5, "max_completion_tokens": 4}, 5),
        ({"n_predict": None, "max_tokens": 3}, 3),
    ],
)
async def test_the_number_of_tokens_has_several_names(
    world: World, body: dict[str, Any], expected: int
) -> None:
    assert read_generation(body, world.services).n_predict == expected


async def test_the_servers_defaults_stand_between_body_and_core() -> None:
    defaults = {"temperature": 0.1, "n_predict": 9, "samplers": "kt", "stop": ["END"]}
    async with generation_world(request_defaults=defaults) as world:
        params = read_generation({"temperature": 0.5}, world.services)
        assert (params.sampling.temperature, params.n_predict) == (0.5, 9)
        assert (params.sampling.samplers, params.stop) == (["top_k", "temperature"], ["END"])
        assert read_generation({"max_tokens": 2}, world.services).n_predict == 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("kt", ["top_k", "temperature"]),
        ("edskypmxt"[:3], ["penalties", "dry", "top_n_sigma"]),
        (["top_k", "bogus", "min_p"], ["top_k", "min_p"]),
        ("", []),
    ],
)
async def test_samplers_are_names_or_letters(world: World, value: Any, expected: list[str]) -> None:
    assert read_generation({"samplers": value}, world.services).sampling.samplers == expected


@pytest.mark.parametrize("body", [{"samplers": 5}, {"samplers": [5]}, {"dry_sequence_breakers": []}])
async def test_a_broken_list_is_refused(world: World, body: dict[str, Any]) -> None:
    assert refusal(world, body).message.startswith(f"Field '{next(iter(body))}': ")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param([[5, 1.5]], [(5, 1.5)], id="pair"),
        pytest.param({"5": 1}, [(5, 1.0)], id="object with an id"),
        pytest.param({"ab": -1}, [(97, -1.0), (98, -1.0)], id="object with a text"),
        pytest.param([["ab", False]], [(97, -math.inf), (98, -math.inf)], id="forbidden text"),
        pytest.param([[10**6, 1], [-1, 1]], [], id="outside the vocabulary"),
    ],
)
async def test_a_bias_has_several_forms(world: World, value: Any, expected: list[Any]) -> None:
    assert read_generation({"logit_bias": value}, world.services).sampling.logit_bias == expected


@pytest.mark.parametrize("value", [5, [5], [[1]], [[1, True]], [[1, "x"]], [[1.5, 1]], [[1, math.inf]]])
async def test_a_broken_bias_is_refused(world: World, value: Any) -> None:
    assert refusal(world, {"logit_bias": value}).message.startswith("Field 'logit_bias': ")


async def test_the_number_of_biases_is_bounded(world: World) -> None:
    refusal(world, {"logit_bias": [["x" * 1000, 1]] * 100})


@pytest.mark.parametrize(("value", "expected"), [("a", ["a"]), (["a", "", "b"], ["a", "b"]), ([], [])])
async def test_stop_is_a_text_or_a_list(world: World, value: Any, expected: list[str]) -> None:
    assert read_generation({"stop": value}, world.services).stop == expected


async def test_stop_strings_of_a_megabyte_are_taken_and_no_more(world: World) -> None:
    assert read_generation({"stop": ["x" * (MAX_STOP_BYTES // 4)] * 4}, world.services).stop
    assert str(MAX_STOP_BYTES) in refusal(world, {"stop": "x" * (MAX_STOP_BYTES + 1)}).message


async def test_probabilities_have_two_names_and_a_chats_switch_is_not_one(world: World) -> None:
    assert read_generation({"n_probs": 3, "logprobs": 5}, world.services).n_probs == 3
    assert read_generation({"logprobs": 5}, world.services).n_probs == 5
    assert read_generation({"logprobs": True}, world.services).n_probs == 0
    assert "n_probs" in refusal(world, {"n_probs": 10**6}).message


async def test_adapters_are_scales_by_number(world: World) -> None:
    body = {"lora": [{"id": 0, "scale": 1}, {"id": 1, "scale": 0.5}]}
    assert read_generation(body, world.services).lora == {0: 1.0, 1: 0.5}
    assert read_generation({}, world.services).lora is None
    assert read_generation({"lora": []}, world.services).lora == {}


@pytest.mark.parametrize("value", [5, [5], [{"id": 0}], [{"id": -1, "scale": 1}], [{"id": 0, "scale": "x"}]])
async def test_broken_adapters_are_refused(world: World, value: Any) -> None:
    assert refusal(world, {"lora": value}).message.startswith("Field 'lora': ")


async def test_a_schema_becomes_a_grammar(world: World) -> None:
    assert (
        "root ::=" in read_generation({"json_schema": {"type": "integer"}}, world.services).sampling.grammar
    )


async def test_grammar_and_schema_exclude_each_other(world: World) -> None:
    message = refusal(world, {"grammar": 'root ::= "a"', "json_schema": {}}).message
    assert message == "Either 'grammar' or 'json_schema' can be used, not both"


async def test_an_impossible_schema_is_named(world: World) -> None:
    assert refusal(world, {"json_schema": 5}).message.startswith("Field 'json_schema': ")


async def test_a_large_schema_is_converted_beside_the_loop(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    inner = fields.read_generation

    def noted(body: Any, services: Any) -> Any:
        threads.append(threading.current_thread().name)
        return inner(body, services)

    monkeypatch.setattr(fields, "read_generation", noted)
    large = {"enum": [f"word {number} {'x' * 100}" for number in range(700)]}
    assert (await read_generation_off_loop({"json_schema": large}, world.services)).sampling.grammar
    await read_generation_off_loop({"grammar": 'root ::= "a"'}, world.services)
    await read_generation_off_loop({"stop": ["x" * 70_000]}, world.services)
    await read_generation_off_loop({"stop": ["x"]}, world.services)
    main = threading.main_thread().name
    assert [name == main for name in threads] == [False, False, False, True]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"samplers": ["top_k"] * 65}, "65 samplers"),
        ({"samplers": "k" * 65}, "65 samplers"),
        ({"reasoning_budget_message": "x" * 65_537}, "65537 bytes"),
        (
            {"reasoning_budget_message": "x" * 40_000, "reasoning_budget_end_tags": ["y" * 40_000]},
            "80000 bytes",
        ),
        ({"reasoning_budget_start_tag": "x" * 65_537}, "65537 bytes"),
        ({"logit_bias": [["x" * 4097, 1]]}, "4097 bytes"),
        ({"logit_bias": [[1, 1]] * 65_537}, "65537 entries"),
        ({"preserved_tokens": ["x" * 4097]}, "4097 bytes"),
        ({"grammar_triggers": [{"type": 1, "value": "x" * 4097}]}, "4097 bytes"),
        ({"grammar_triggers": [{"type": 1, "value": "x"}] * 257}, "257 entries"),
    ],
)
async def test_texts_that_every_task_would_hold_are_bounded(world: World, body: Any, told: str) -> None:
    assert told in refusal(world, body).message


async def test_a_lazy_grammar_has_triggers_and_preserved_tokens(world: World) -> None:
    body = {
        "grammar": 'root ::= "a"',
        "grammar_lazy": True,
        "preserved_tokens": [SPECIAL.decode(), "no single token"],
        "grammar_triggers": [
            {"type": 1, "value": SPECIAL.decode()},
            {"type": 1, "value": "<call>"},
            {"type": 2, "value": "a.*"},
            {"type": 0, "value": "x", "token": 7},
        ],
    }
    sampling = read_generation(body, world.services).sampling
    assert sampling.preserved_tokens == [SPECIAL_ID]
    assert [(trigger.kind, trigger.token) for trigger in sampling.grammar_triggers] == [
        ("token", SPECIAL_ID),
        ("word", -1),
        ("pattern", -1),
        ("token", 7),
    ]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"grammar_triggers": 5}, id="no list"),
        pytest.param({"grammar_triggers": [{"type": 9, "value": "a"}]}, id="unknown kind"),
        pytest.param({"grammar_triggers": [{"type": 0, "value": "a"}]}, id="token without id"),
        pytest.param(
            {"grammar_triggers": [{"type": 1, "value": SPECIAL.decode()}]}, id="token not preserved"
        ),
        pytest.param({"grammar_lazy": True, "grammar": 'root ::= "x"'}, id="lazy without triggers"),
        pytest.param({"preserved_tokens": [1]}, id="ids"),
        pytest.param({"reasoning_budget_tokens": -2}, id="budget"),
        pytest.param({"reasoning_budget_end_tags": [1]}, id="tags"),
    ],
)
async def test_broken_constraints_are_refused(world: World, body: dict[str, Any]) -> None:
    assert refusal(world, body).message.startswith("Field '")


async def test_a_reasoning_budget_reaches_the_core(world: World) -> None:
    body = {
        "reasoning_budget_tokens": 5,
        "reasoning_budget_message": "enough",
        "reasoning_budget_start_tag": "<t>",
        "reasoning_budget_end_tags": "</t>",
        "reasoning_control": True,
    }
    reasoning = read_generation(body, world.services).sampling.reasoning
    assert (reasoning.budget_tokens, reasoning.message, reasoning.controllable) == (5, "enough", True)
    assert (reasoning.start_tag, reasoning.end_tags) == ("<t>", ["</t>"])


async def test_unknown_fields_are_ignored(world: World) -> None:
    read_generation({"whatever": [1], "speculative.types": 5, "model": "m"}, world.services)


async def test_the_fields_of_a_whole_request(world: World) -> None:
    body = {"n": 2, "id_slot": 1, "sse_ping_interval": 5, "stream_options": {"include_usage": True}}
    wishes = read_request({**body, "verbose": True, "response_fields": ["a/b"]}, world.services)
    assert (wishes.n_choices, wishes.id_slot, wishes.ping_interval_s, wishes.include_usage) == (2, 1, 5, True)
    assert (wishes.verbose, wishes.engine_report, wishes.response_fields) == (True, True, ("a/b",))
    plain = read_request({}, world.services)
    assert (plain.n_choices, plain.id_slot, plain.ping_interval_s, plain.include_usage) == (1, -1, 30, False)


@pytest.mark.parametrize("value", [0, -1, 5])
async def test_choices_go_from_one_to_the_number_of_slots(world: World, value: int) -> None:
    with pytest.raises(ApiError) as caught:
        read_request({"n": value}, world.services)
    assert caught.value.message == f"Field 'n': value must be between 1 and 4, but got {value}"


@pytest.mark.parametrize("body", [{"stream_options": 5}, {"response_fields": 5}, {"sse_ping_interval": -2}])
async def test_broken_fields_of_a_request_are_refused(world: World, body: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        read_request(body, world.services)
    assert caught.value.message.startswith(f"Field '{next(iter(body))}': ")


def test_a_grammar_that_would_hang_the_engine_is_refused() -> None:
    with pytest.raises(ApiError, match="Failed to initialize samplers"):
        read_grammar({"grammar": 'root ::= ("a"){3,2}'}, {})
