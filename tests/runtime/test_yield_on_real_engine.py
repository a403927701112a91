"""What n-gram drafting brings with a real model: a gain on text that repeats, a loss on text that only looks
as if it did (05 §11.7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.api.shapes import model_json
from framework.planning.speculation.profit import WatchLimits
from framework.values.instance import ModelView, State
from framework.values.request import ModelRequest, PoolLimits, SpecPolicy
from tests.runtime.conftest import FleetRig, request_for
from tests.support.asking import Client

# A machine that runs other tests too takes its time over a few hundred tokens.
pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

OFF = SpecPolicy(mode="off")
CAREFUL = SpecPolicy(mode="ngram", ngram_match=12, ngram_min=24, ngram_max=64)
# Drafts after one equal token, so that nearly every step has a draft, right or wrong.
EAGER = replace(CAREFUL, ngram_match=1, ngram_min=1, ngram_max=16)
# The model is made to write what the test is about, whatever it would like to say.
SENTENCE = "the cat sat on the mat and looked at the dog. "
REPEATS: dict[str, Any] = {"grammar": f'root ::= ("{SENTENCE}")+', "temperature": 0, "max_tokens": 300}
BIAS = [[digit, 100] for digit in "01234567"]
DIGITS = {"logit_bias": BIAS, "temperature": 20.0, "top_k": 8, "min_p": 0, "max_tokens": 64}
ANSWER = {"ignore_eos": True, "cache_prompt": False}
ANSWERS = 2
WAIT_S = 240.0


@pytest.fixture
def request_on_cpu(engine_binary: Path, smollm2: Path) -> ModelRequest:
    """The demo model alone on the CPU, where a wrong draft costs what it costs."""
    return request_for(engine_binary, smollm2, slots=1, threads=1, pool=PoolLimits(devices=("cpu",)))


@pytest.fixture
async def ask(rig: FleetRig, request_on_cpu: ModelRequest) -> AsyncIterator[Client]:
    """A client of it."""
    client = Client(rig.fleet, request_on_cpu)
    yield client
    await client.close()


async def until(
    rig: FleetRig, running: str, is_so: Callable[[ModelView], bool] = lambda _: True
) -> ModelView:
    """Wait until the model serves with this drafting."""
    async with asyncio.timeout(WAIT_S):
        while True:
            seen = rig.changes.version
            view = rig.fleet.view("m")
            if view is not None and runs(view, running) and is_so(view):
                return view
            await rig.changes.wait(seen)


def runs(view: ModelView, running: str) -> bool:
    """Whether the model serves with this drafting, and nothing is being replaced."""
    results = [instance.running for instance in view.instances]
    return view.state is State.READY and [r.speculation if r else None for r in results] == [running]


async def timed(
    rig: FleetRig, client: Client, request: ModelRequest, policy: SpecPolicy, fields: Mapping[str, object]
) -> None:
    """The same kind of answers without drafting, then with it."""
    for spec, running in ((OFF, "none"), (policy, "ngram-mod")):
        rig.declare(replace(request, spec=spec))
        await until(rig, running)
        for number in range(ANSWERS):
            await client.chat(f"Write something, number {number}.", seed=number, **{**ANSWER, **fields})


async def test_most_of_a_text_that_repeats_is_drafted_and_the_status_says_what_that_brings(
    rig: FleetRig, request_on_cpu: ModelRequest, ask: Client
) -> None:
    await timed(rig, ask, request_on_cpu, CAREFUL, REPEATS)
    view = await until(rig, "ngram-mod", lambda view: bool(view.speeds))
    told = model_json(view)["instances"][0]["speculation"]
    # How fast it is here and now says something of whoever else uses the machine: the bench has real numbers.
    assert told["speedup"] > 0
    assert told["acceptance"] > 0.5
    assert told["accepted"] > ANSWERS * REPEATS["max_tokens"] / 2
    assert told["drafted_by_position"][0] >= told["accepted_by_position"][0] > 0


async def test_text_that_only_looks_repetitive_has_its_drafting_switched_off(
    rig: FleetRig, request_on_cpu: ModelRequest, ask: Client
) -> None:
    rig.shop.watch_limits = WatchLimits(min_requests=ANSWERS, loses_for_s=0.0, quiet_s=0.0)
    await timed(rig, ask, request_on_cpu, EAGER, DIGITS)
    view = await until(rig, "none", lambda view: view.instances[0].request.spec == EAGER)
    told = model_json(view)["instances"][0]["speculation"]
    assert (told["asked"], told["resolved"], told["running"]) == ("ngram", "none", "none")
    assert told["reason"]["code"] == "speculation_unprofitable"
    assert told["reason"]["evidence"]["ratio"] < 0.97
