"""Conversations go on without being read again after their process has ended, with real engines (07 §11)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.values.engine import EngineRef
from framework.values.instance import State
from framework.values.request import ModelRequest, ModelSource, PoolLimits
from tests.runtime.conftest import FleetRig, changed, request_for
from tests.support.asking import Client
from tests.support.working_models import write_adapter, write_working_model

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

HORSE = "Once upon a time there was a horse that lived by the sea. " * 25
COUNTRY = "The parliament of a small country met every second week. " * 25
# A question, the last tokens of an answer, and what the template puts around them.
NEW_TOKENS = 60
ENDS = {"temperature": 0, "max_tokens": 8}


@pytest.fixture(params=["llama-server", "native"])
def asked(request: pytest.FixtureRequest, engine_binary: Path, smollm2: Path) -> ModelRequest:
    """The demo model with two slots on the CPU."""
    on_cpu: dict[str, Any] = {"n_ctx": 4096, "slots": 2, "pool": PoolLimits(devices=("cpu",))}
    asked = request_for(engine_binary, smollm2, **on_cpu)
    return changed(asked, engine=EngineRef(name="own", kind="native")) if request.param == "native" else asked


@pytest.fixture
async def client(rig: FleetRig, asked: ModelRequest) -> AsyncIterator[Client]:
    """A client of it."""
    client = Client(rig.fleet, asked)
    yield client
    await client.close()


async def read(client: Client, story: str, *more: str) -> tuple[int, int]:
    """Ask something about a story; how many tokens were known, and how many had to be read."""
    messages = [{"role": "user", "content": story}]
    for question in more:
        messages += [{"role": "assistant", "content": "I see."}, {"role": "user", "content": question}]
    answer = await client.chat(messages=messages, **ENDS)
    timings = answer.state.timings
    assert timings is not None
    return timings["cache_n"], timings["prompt_n"]


async def restarted(rig: FleetRig) -> None:
    """Unload the model, and load it again."""
    before = rig.instance("m").pid
    rig.fleet.unload("m", by="test")
    await rig.until("m", State.STOPPED)
    rig.fleet.load("m", by="test")
    assert (await rig.until("m", State.READY)).pid != before


async def test_both_conversations_go_on_where_they_were(
    rig: FleetRig, asked: ModelRequest, client: Client
) -> None:
    rig.declare(asked)
    lengths = [(await read(client, story))[1] for story in (HORSE, COUNTRY)]
    assert min(lengths) > 5 * NEW_TOKENS
    await restarted(rig)
    assert rig.event("slots_restored").data["count"] == 2
    for story, length in ((COUNTRY, lengths[1]), (HORSE, lengths[0])):
        known, new = await read(client, story, "And then?")
        assert known > length - NEW_TOKENS
        assert new < NEW_TOKENS


async def test_other_settings_read_everything_again(
    rig: FleetRig, asked: ModelRequest, client: Client
) -> None:
    rig.declare(asked)
    _, length = await read(client, HORSE)
    rig.fleet.unload("m", by="test")
    await rig.until("m", State.STOPPED)
    assert rig.event("slots_saved").data["tokens"] >= length
    rig.declare(changed(asked, cache_type=("q8_0", None)))
    await rig.until("m", State.READY)
    assert rig.event("slots_discarded").reason is not None
    assert (await read(client, HORSE, "And then?"))[0] < NEW_TOKENS
    assert list((rig.directory / "state" / "slots" / "m.0").iterdir()) == []


async def test_what_a_request_with_adapters_of_its_own_left_is_not_carried_over(
    rig: FleetRig, asked: ModelRequest, tmp_path: Path
) -> None:
    model = write_working_model(tmp_path / "noise.gguf")
    adapter = write_adapter(tmp_path / "adapter.gguf", model)
    noise = replace(asked, source=ModelSource(path=model), n_ctx=2048, adapters=((adapter, 1.0),))
    rig.declare(noise)
    await rig.until("m", State.READY)
    client = Client(rig.fleet, noise)
    # One token for everything, since noise is no text.
    always_a = {"logit_bias": [[100, 100]]}
    await client.chat("Some letters.", lora=[{"id": 0, "scale": 0.0}], **always_a, **ENDS)
    await restarted(rig)
    assert not [kind for kind in rig.kinds() if kind.startswith("slots_")]
    await client.chat("Some letters.", **always_a, **ENDS)
    await restarted(rig)
    assert rig.event("slots_restored").data["count"] == 1
    await client.close()
