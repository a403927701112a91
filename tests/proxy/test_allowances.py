"""Limits of access keys: what is refused, with which time to wait, and what outlives a reload and a
restart."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from framework.proxy.allowances import Allowances
from framework.proxy.errors import ProxyError
from framework.values.manifest import AccessKey
from framework.values.rate import Rate
from tests.proxy.scripted_engine import Call, hang, piece, role
from tests.proxy.world import HELLO, World, model
from tests.support.waiting import eventually

MINUTE, DAY = 60.0, 86400.0
WALL = 1_700_000_000.0
KEY = AccessKey("laptop", sha256(b"s3cret").hexdigest())
HEADERS = {"x-api-key": "s3cret"}


def refused(allowances: Allowances, key: AccessKey, now: float) -> ProxyError:
    with pytest.raises(ProxyError) as caught:
        allowances.enter(key, now)
    assert caught.value.status == 429
    assert int(caught.value.headers["retry-after"]) >= 1
    return caught.value


def test_a_rate_is_refused_with_the_time_to_wait() -> None:
    allowances, key = Allowances(), replace(KEY, rate=Rate(2, MINUTE))
    for _ in range(2):
        allowances.leave(allowances.enter(key, 0.0), 0, 0.0)
    error = refused(allowances, key, 0.0)
    assert (error.code, error.type) == ("rate_limited", "rate_limit_error")
    assert "it may have 2/min (access.laptop.rate)" in error.message
    assert error.message.endswith("the next may come in 1 min.")
    wait_s = float(error.headers["retry-after"])
    assert allowances.enter(key, wait_s).running == 1


@pytest.mark.parametrize(
    ("rate", "every_s"), [(Rate(1, 1.0), 1.2), (Rate(1, MINUTE), 61.0), (Rate(3, MINUTE), 20.5)]
)
def test_who_keeps_to_a_rate_is_never_refused(rate: Rate, every_s: float) -> None:
    allowances, key = Allowances(), replace(KEY, rate=rate)
    for number in range(20):
        allowances.leave(allowances.enter(key, number * every_s), 0, number * every_s)


def test_a_rate_of_many_is_estimated() -> None:
    allowances, key = Allowances(), replace(KEY, rate=Rate(5000, MINUTE))
    for _ in range(5000):
        allowances.leave(allowances.enter(key, 0.0), 0, 0.0)
    assert "by estimate" in refused(allowances, key, 0.0).message


def test_a_refused_request_takes_nothing() -> None:
    allowances, key = Allowances(), replace(KEY, rate=Rate(2, MINUTE), concurrency=1)
    running = allowances.enter(key, 0.0)
    for _ in range(50):
        assert refused(allowances, key, 0.0).code == "concurrency_limited"
    allowances.leave(running, 0, 0.0)
    allowances.enter(key, 0.0)


def test_tokens_are_counted_when_a_request_ends_and_too_many_are_a_debt() -> None:
    allowances, key = Allowances(), replace(KEY, tokens=Rate(100, DAY))
    first, second = allowances.enter(key, 0.0), allowances.enter(key, 0.0)
    allowances.leave(first, 60, 1.0)
    assert allowances.tokens_left([key], 1.0) == {"laptop": 40}
    allowances.leave(second, 240, 1.0)
    assert allowances.tokens_left([key], 1.0) == {"laptop": -200}
    error = refused(allowances, key, 1.0)
    assert error.code == "tokens_limited"
    assert float(error.headers["retry-after"]) > DAY
    assert "it may have 100/day (access.laptop.tokens)" in error.message
    assert error.message.endswith("the next may come in 40 h 5 min.")


def test_keys_do_not_share_their_limits() -> None:
    allowances, key = Allowances(), replace(KEY, concurrency=1)
    allowances.enter(key, 0.0)
    error = refused(allowances, key, 0.0)
    assert error.code == "concurrency_limited"
    assert "may have 1 request at once" in error.message
    allowances.enter(replace(key, name="phone"), 0.0)


def test_a_key_without_limits_is_never_refused() -> None:
    allowances = Allowances()
    for _ in range(1000):
        allowances.enter(KEY, 0.0)


def test_a_restart_goes_on_with_the_tokens() -> None:
    key = replace(KEY, tokens=Rate(100, DAY))
    before = Allowances()
    before.leave(before.enter(key, 50.0), 100, 50.0)
    assert before.changed
    kept = json.loads(json.dumps(before.as_json(50.0, WALL)))
    assert not before.changed
    after = Allowances()
    after.restore(kept, 7.0, WALL + 3600)
    assert refused(after, key, 7.0).code == "tokens_limited"


def test_what_is_older_than_two_periods_is_forgotten() -> None:
    key = replace(KEY, tokens=Rate(100, MINUTE))
    before = Allowances()
    before.leave(before.enter(key, 0.0), 100, 0.0)
    after = Allowances()
    after.restore(before.as_json(0.0, WALL), 0.0, WALL + 3 * MINUTE)
    assert after.tokens_left([key], 0.0) == {"laptop": 100}


@pytest.mark.parametrize(
    "one",
    [
        None,
        7,
        {},
        {"period_s": "x", "began": 0, "count": 0, "before": 0},
        {"period_s": 0, "began": WALL, "count": 1, "before": 0},
        {"period_s": 60, "began": WALL, "count": -5, "before": 0},
        {"period_s": 60, "began": WALL + 1e9, "count": 5, "before": 0},
        {"period_s": float("nan"), "began": WALL, "count": 5, "before": 0},
        {"period_s": 60, "began": float("inf"), "count": 5, "before": 0},
    ],
    ids=["null", "number", "empty", "text", "no-period", "negative", "future", "nan", "inf"],
)
def test_a_kept_value_that_is_none_counts_as_nothing(one: object) -> None:
    allowances = Allowances()
    allowances.restore({"laptop": one}, 0.0, WALL)
    assert allowances.uses == {}


async def test_a_limit_of_requests_at_once_holds_until_one_ends(world: World) -> None:
    world.declare(model("smol"), access=(replace(KEY, concurrency=1),))
    world.engine.scripts = [hang]
    first = world.call("/v1/chat/completions", HELLO, headers=HEADERS)
    await eventually(lambda: bool(world.engine.calls))
    second = await world.ask("/v1/chat/completions", HELLO, headers=HEADERS)
    assert (second.status, second.error()["code"]) == (429, "concurrency_limited")
    assert second.headers["retry-after"] == "1"
    first.gone.set()
    await first.finished()
    assert world.services.allowances.uses["laptop"].running == 0


async def test_a_reload_keeps_what_was_used_and_takes_the_new_limit(world: World) -> None:
    for count, status in ((1, 200), (1, 429), (2, 200), (2, 429)):
        world.declare(model("smol"), access=(replace(KEY, rate=Rate(count, DAY)),))
        answer = await world.ask("/v1/chat/completions", HELLO, headers=HEADERS)
        assert answer.status == status


async def test_tokens_of_prompt_and_answer_are_taken(world: World) -> None:
    key = replace(KEY, tokens=Rate(1000, DAY))
    world.declare(model("smol"), access=(key,))
    await world.ask("/v1/chat/completions", HELLO, headers=HEADERS)
    record = world.records[-1]
    used = (record.prompt_tokens or 0) + (record.generated_tokens or 0)
    assert used > 0
    left = world.services.allowances.tokens_left([key], world.services.clock())
    assert left == {"laptop": 1000 - used}


async def test_a_client_that_leaves_early_has_not_read_its_prompt_for_nothing(world: World) -> None:
    key = replace(KEY, tokens=Rate(100_000, DAY))
    world.declare(model("smol"), access=(key,))

    async def begin_and_hang(call: Call) -> None:
        await call.start_stream()
        await call.events(role(), piece("Hel"))
        await call.closed.wait()

    world.engine.scripts = [begin_and_hang]
    prompt = [{"role": "user", "content": "x" * 4000}]
    call = world.call("/v1/chat/completions", {**HELLO, "messages": prompt, "stream": True}, headers=HEADERS)
    await call.until(b"Hel")
    call.gone.set()
    await call.finished()
    left = world.services.allowances.tokens_left([key], world.services.clock())["laptop"]
    assert 1000 < 100_000 - left < 1100


async def test_looking_and_cancelling_count_nothing(world: World) -> None:
    world.declare(model("smol"), access=(replace(KEY, rate=Rate(1, DAY)),))
    for _ in range(3):
        assert (await world.ask("/v1/models", method="GET", headers=HEADERS)).status == 200
        assert (await world.ask("/v1/requests/req-x/cancel", headers=HEADERS)).status == 404
    assert (await world.ask("/v1/chat/completions", HELLO, headers=HEADERS)).status == 200


@pytest.mark.parametrize(("path", "is_free"), [("/embeddings", False), ("/tokenize", True)])
async def test_what_a_model_reads_and_does_not_count_is_guessed_by_its_size(
    world: World, path: str, is_free: bool
) -> None:
    key = replace(KEY, tokens=Rate(100_000, DAY))
    world.declare(model("smol"), access=(key,))

    async def uncounted(call: Call) -> None:
        await call.json(200, [{"index": 0, "embedding": [[0.5]]}])

    world.engine.scripts = [uncounted]
    body = {"model": "smol", "content": ["x" * 2000, "y" * 2000]}
    assert (await world.ask(path, body, headers=HEADERS)).status == 200
    left = world.services.allowances.tokens_left([key], world.services.clock())["laptop"]
    assert left == 100_000 if is_free else 1000 < 100_000 - left < 1100
