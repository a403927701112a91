"""Request fields of drafting and of the loop guard (12 §5.4, 11 §18.2, §19.3)."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from framework.nativeserver.errors import ApiError
from framework.nativeserver.fields import read_generation, read_request
from framework.nativeserver.flags.loop_guard import DEFAULTS
from tests.nativeserver import drafting
from tests.nativeserver.chat_world import ChatWorld
from tests.nativeserver.generation_world import World, generation_world

SERVER = {"n_max": 5, "n_min": 1}
GUARD = "reasoning_loop_guard"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with generation_world() as made:
        made.services.options = type(made.services.options)(engine={"speculation": SERVER})
        made.engine.speculation_ = drafting.speculation("ngram-mod", draft_simple="draft-file-missing")
        yield made


def asked(world: World, body: dict[str, Any]) -> SimpleNamespace:
    params: SimpleNamespace = read_generation(body, world.services).speculation
    return params


def refusal(world: World, body: dict[str, Any]) -> str:
    with pytest.raises(ApiError) as caught:
        read_generation(body, world.services)
    assert (caught.value.status, caught.value.envelope()["error"]["type"]) == (400, "invalid_request_error")
    return caught.value.message


FIELDS = {
    "type": "ngram-mod",
    "n_max": 4,
    "n_min": 2,
    "p_min": 0.5,
    "adaptive": False,
    "controller": "fringe",
}


@pytest.mark.parametrize(
    "body",
    [
        {"speculative": FIELDS},
        {f"speculative.{name}": value for name, value in FIELDS.items()},
        {"speculative": {**FIELDS, "n_max": 3}, "speculative.n_max": 4},
        {"speculative": FIELDS, "speculative.n_max": None},
    ],
    ids=["nested", "flat", "flat-goes-first", "null-is-no-value"],
)
async def test_fields_are_read_flat_and_nested(world: World, body: dict[str, Any]) -> None:
    assert vars(asked(world, body)) == FIELDS


@pytest.mark.parametrize(
    "body", [{}, {"speculative": None}, {"speculative": {}}, {"speculative": dict.fromkeys(FIELDS)}]
)
async def test_what_is_not_said_is_left_to_the_server(world: World, body: dict[str, Any]) -> None:
    assert asked(world, body) == drafting.speculation_request()


@pytest.mark.parametrize(
    ("kind", "used", "reason"),
    [
        ("none", "none", ""),
        ("ngram-mod", "ngram-mod", ""),
        ("draft-simple", None, "draft-file-missing"),
        ("draft-mtp", None, "type-not-built"),
        ("ngram-cache", None, "type-not-built"),
    ],
)
async def test_a_type_that_is_not_loaded_is_ignored_with_its_reason(
    world: World, kind: str, used: str | None, reason: str
) -> None:
    body = {"speculative.type": kind}
    assert asked(world, body).type == used
    assert read_request(body, world.services).ignored_type == reason


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"speculative": 1}, "Field 'speculative': type must be object, but is number"),
        ({"speculative": [[{}]]}, "Field 'speculative': type must be object, but is array"),
        ({"speculative": "ngram-mod"}, "Field 'speculative': type must be object, but is string"),
        ({"speculative.type": 5}, "Field 'speculative.type': type must be string, but is number"),
        ({"speculative.type": "x" * 10**6}, "Field 'speculative.type': must be one of none, "),
        ({"speculative": {"type": ["ngram-mod"]}}, "Field 'speculative.type': type must be string"),
        ({"speculative.n_max": "4"}, "Field 'speculative.n_max': type must be number, but is string"),
        ({"speculative.n_max": True}, "Field 'speculative.n_max': type must be number, but is boolean"),
        ({"speculative.n_max": 6}, "Field 'speculative.n_max': value must be between 1 and 5, but got 6"),
        ({"speculative.n_max": 0}, "Field 'speculative.n_max': value must be between 1 and 5, but got 0"),
        ({"speculative.n_max": 2.5}, "Field 'speculative.n_max': must be a whole number"),
        ({"speculative.n_max": 2**64}, "Field 'speculative.n_max': value must be between 1 and 5"),
        ({"speculative.n_max": math.nan}, "Field 'speculative.n_max': must be a finite number"),
        ({"speculative": {"n_max": [[[1]]]}}, "Field 'speculative.n_max': type must be number, but is array"),
        ({"speculative.n_min": -1}, "Field 'speculative.n_min': value must be between 0 and 5, but got -1"),
        (
            {"speculative": {"n_max": 2, "n_min": 3}},
            "Field 'speculative.n_min': value must be between 0 and 2, but got 3",
        ),
        ({"speculative.p_min": 1.5}, "Field 'speculative.p_min': value must be between 0 and 1, but got 1.5"),
        ({"speculative.p_min": math.inf}, "Field 'speculative.p_min': must be a finite number"),
        ({"speculative.adaptive": "on"}, "Field 'speculative.adaptive': type must be boolean"),
        ({"speculative.controller": "pid"}, "Field 'speculative.controller': must be one of profit, fringe"),
        (
            {"speculative.controller": {}},
            "Field 'speculative.controller': type must be string, but is object",
        ),
    ],
)
async def test_a_bad_field_is_named_with_its_range(world: World, body: dict[str, Any], words: str) -> None:
    message = refusal(world, body)
    assert message.startswith(words)
    assert len(message) < 1000


@pytest.mark.parametrize("name", ["speculative.n_max", "speculative.n_min"])
async def test_a_length_above_the_servers_own_says_what_it_is_for_and_who_raises_it(
    world: World, name: str
) -> None:
    message = refusal(world, {name: 6})
    assert "n-gram types have lengths of their own" in message
    assert message.endswith("--spec-draft-n-max raises its limit, up to 64")


async def test_the_longest_draft_is_not_shorter_than_the_servers_shortest() -> None:
    async with generation_world() as world:
        world.services.options = type(world.services.options)(
            engine={"speculation": {"n_max": 5, "n_min": 3}}
        )
        message = refusal(world, {"speculative.n_max": 2})
        assert message == "Field 'speculative.n_max': value must be between 3 and 5, but got 2"


async def test_the_guard_goes_over_that_of_the_server() -> None:
    given = {"mode": "stop", "window_tokens": 600}
    async with generation_world(request_defaults={GUARD: given}) as world:
        assert vars(read_generation({}, world.services).loop_guard) == {**DEFAULTS, **given}
        body = {GUARD: {"mode": "force-close", "max_period": 200, "check_interval": None, "new": 1}}
        wanted = {**DEFAULTS, **given, "mode": "force-close", "max_period": 200}
        assert vars(read_generation(body, world.services).loop_guard) == wanted


@pytest.mark.parametrize(
    ("guard", "words"),
    [
        (5, f"Field '{GUARD}': type must be object, but is number"),
        ([["stop"]], f"Field '{GUARD}': type must be object, but is array"),
        ("stop", f"Field '{GUARD}': type must be object, but is string"),
        ({"mode": "on"}, f"Field '{GUARD}.mode': must be one of off, stop, force-close"),
        ({"mode": 1}, f"Field '{GUARD}.mode': type must be string, but is number"),
        ({"window_tokens": "x"}, f"Field '{GUARD}.window_tokens': type must be number, but is string"),
        ({"window_tokens": 0}, f"Field '{GUARD}.window_tokens': value must be between 1 and 4096, but got 0"),
        ({"window_tokens": 2**40}, f"Field '{GUARD}.window_tokens': value must be between 1 and 4096"),
        ({"check_interval": math.nan}, f"Field '{GUARD}.check_interval': must be a finite number"),
        ({"check_interval": 0}, f"Field '{GUARD}.check_interval': value must be between 1 and "),
        ({"interventions_max": -1}, f"Field '{GUARD}.interventions_max': value must be between 0 and "),
        ({"min_reasoning_tokens": True}, f"Field '{GUARD}.min_reasoning_tokens': type must be number"),
        (
            {"window_tokens": 100},
            f"Field '{GUARD}.window_tokens': {GUARD}.window_tokens 100 must be at least"
            f" {GUARD}.min_repeated_coverage 192",
        ),
        (
            {"max_period": 129},
            f"Field '{GUARD}.max_period': {GUARD}.max_period 129 must be at most a third of",
        ),
        ({"min_reasoning_tokens": 1}, f"Field '{GUARD}.min_reasoning_tokens': "),
    ],
)
async def test_a_bad_guard_is_refused_whatever_its_mode(world: World, guard: Any, words: str) -> None:
    assert refusal(world, {GUARD: guard}).startswith(words)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "a"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
        ("/v1/responses", {"input": "a"}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 5}),
    ],
)
async def test_every_flavour_reads_them_and_tells_what_came_of_them(path: str, body: dict[str, Any]) -> None:
    world = ChatWorld()
    world.engine.speculation_ = drafting.speculation("ngram-mod")
    async with world.bridge:
        wishes = {"speculative": {"n_max": 2, "type": "draft-mtp"}, GUARD: {"mode": "stop"}}
        answer = (await world.post(path, {**body, **wishes, "engine_report": True})).json()
        refused = await world.post(path, {**body, "speculative": {"n_max": 64}})
    (task,) = world.engine.tasks
    assert (task.params.speculation.n_max, task.params.loop_guard.mode) == (2, "stop")
    assert answer["engine_report"]["speculation"]["fallback_reason"] == "type-not-built"
    assert (refused.status, "speculative.n_max" in refused.error()["message"]) == (400, True)
