"""What slots hold outlives their process, or is given up with a reason, never at the cost of a stop (07 §11).

Fake engines, whose slot files are what they say they are. The real ones are in test_slots_on_real_engines.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.runtime.slot_saving import Patience
from framework.values.instance import State
from framework.values.request import PoolLimits
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, changed, request_for
from tests.runtime.conversations import Conversations
from tests.support.asking import Client
from tests.support.fakes import FakeEngine
from tests.support.sized_models import write_large_model

# Long enough that requests which are sent together meet, and take a slot each.
TALKS = {"tokens": 8, "token_interval_s": 0.02}


@asynccontextmanager
async def next_manager(directory: Path) -> AsyncIterator[FleetRig]:
    """Another fleet on the same state directory."""
    rig = FleetRig(directory)
    running = asyncio.create_task(rig.fleet.run())
    try:
        yield rig
    finally:
        await rig.fleet.close(10.0)
        running.cancel()
        await asyncio.wait({running})
        await rig.shop.client.close()


Talk = Callable[..., Conversations]


@pytest.fixture
def talk(rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path) -> Talk:
    """Makes a model of a fake engine; `script` is what that does, `fields` are of the request."""

    def make(live: dict[str, Any] | None = None, script: dict[str, Any] | None = None, **fields: Any) -> Any:
        engine = fake_engine(**TALKS, **(script or {}))
        return Conversations(rig, request_for(engine, tiny_gguf, live=live, **fields))

    return make


async def test_an_unload_saves_what_the_next_start_restores(rig: FleetRig, talk: Talk) -> None:
    model = talk()
    await model.hold()
    await model.unload()
    saved = rig.event("slots_saved")
    assert (saved.data["count"], saved.data["bytes"]) == (2, 2000)
    assert len(model.names) == 3
    assert model.names[-1] == "resume.json"
    assert stat.S_IMODE(model.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in model.folder.iterdir()} == {0o600}
    await model.load()
    restored = rig.event("slots_restored")
    assert (restored.data["count"], restored.data["bytes"]) == (2, 2000)
    assert restored.data["tokens"] == saved.data["tokens"] > 0
    assert model.names == []
    kinds = [e.kind if e.kind != "state" else e.data["to"] for e in rig.events.recent(limit=1000)]
    assert kinds.index("slots_restored") < len(kinds) - 1 - kinds[::-1].index("ready")


async def test_what_was_restored_and_not_used_is_saved_again(rig: FleetRig, talk: Talk) -> None:
    model = talk()
    await model.hold(1)
    await model.unload()
    await model.load()
    await model.unload()
    assert model.told == ["slots_saved", "slots_restored", "slots_saved"]
    assert rig.event("slots_saved").data["count"] == 1


async def test_a_model_that_was_not_used_leaves_nothing(rig: FleetRig, talk: Talk) -> None:
    model = talk()
    await model.hold(0)
    await model.unload()
    assert (model.told, model.names) == ([], [])


@pytest.mark.parametrize(
    ("fault", "count"),
    [("refuses", 1), ("babbles", 1), ("hangs up", 0)],
    ids=[
        "a 500 deletes and goes on",
        "a malformed answer deletes and goes on",
        "no answer deletes and stops",
    ],
)
async def test_a_slot_that_cannot_be_saved(rig: FleetRig, talk: Talk, fault: str, count: int) -> None:
    model = talk(script={"slot_faults": {"save 0": fault}})
    await model.hold()
    await model.unload()
    if count:
        assert rig.event("slots_saved").data["count"] == count
        assert [name.rpartition("-")[2] for name in model.names] == ["slot1.bin", "resume.json"]
    else:
        assert model.told == ["slots_discarded"]
        assert model.names == []


@pytest.mark.parametrize("fault", ["refuses", "babbles"])
async def test_a_slot_that_cannot_be_restored_does_not_keep_the_other(
    rig: FleetRig, talk: Talk, fault: str
) -> None:
    model = talk(script={"slot_faults": {"restore 0": fault}})
    await model.hold()
    await model.unload()
    await model.load()
    assert rig.event("slots_restored").data["count"] == 1
    assert "1 of 2 slots" in rig.event("slots_restored").message
    assert model.names == []


async def test_an_engine_that_takes_nothing_back_serves_all_the_same(rig: FleetRig, talk: Talk) -> None:
    model = talk(script={"slot_faults": {"restore 0": "hangs up"}})
    await model.hold()
    await model.unload()
    await model.load()
    assert model.told == ["slots_saved", "slots_discarded"]
    assert model.cause() == "slot_state_refused"
    assert model.names == []


async def test_more_than_the_limit_is_deleted_as_a_whole(rig: FleetRig, talk: Talk) -> None:
    model = talk(live={"slot_save_max_bytes": 300_000}, script={"slot_bytes": 200_000})
    await model.hold()
    await model.unload()
    assert (model.told, model.names) == (["slots_discarded"], [])
    assert rig.event("slots_discarded").data["count"] == 2
    assert "they took 391 KiB, and slot_state.max is 293 KiB" in rig.event("slots_discarded").message


async def test_a_limit_of_nothing_saves_nothing_and_asks_for_no_restart(rig: FleetRig, talk: Talk) -> None:
    model = talk()
    before = await model.hold()
    none = replace(model.request, live=replace(model.request.live, slot_save_max_bytes=0))
    rig.declare(none)
    await model.unload()
    assert rig.instance("m").generation == before.generation
    assert (model.told, model.names) == ([], [])


async def test_a_model_that_does_not_ask_for_it_has_no_folder(rig: FleetRig, talk: Talk) -> None:
    model = talk(slot_save=False)
    view = await model.hold()
    await model.unload()
    assert view.result is not None
    assert "--slot-save-path" not in view.result.attempts[-1].argv
    assert (model.told, model.folder.exists()) == ([], False)


async def test_a_build_without_the_flag_is_started_without_it_and_the_plan_says_so(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(**TALKS, help="empty")
    model = Conversations(rig, request_for(engine, tiny_gguf))
    view = await model.hold(1)
    await model.unload()
    assert view.plan is not None
    assert "slot_state_unavailable" in {reason.code for reason in view.plan.reasons}
    assert model.told == []


async def test_a_kill_saves_nothing(talk: Talk) -> None:
    model = talk()
    await model.hold()
    await model.unload("kill")
    assert (model.told, model.names) == ([], [])


async def test_an_unload_at_once_saves_as_well(talk: Talk) -> None:
    model = talk()
    await model.hold()
    await model.unload("now")
    assert model.told == ["slots_saved"]


async def test_another_engine_gets_nothing_of_it(rig: FleetRig, talk: Talk) -> None:
    model = talk()
    await model.hold()
    await model.unload()
    path = model.request.engine.path
    assert path is not None
    os.utime(path, (1, 1))
    await model.load()
    assert model.told == ["slots_saved", "slots_discarded"]
    assert model.cause() == "the engine"
    assert rig.event("slots_discarded").data["count"] == 2
    assert model.names == []


async def test_what_nothing_to_come_can_use_goes(rig: FleetRig, talk: Talk) -> None:
    model = talk()
    await model.hold()
    await model.unload()
    model.request = replace(model.request, extra_args=("--no-cache-prompt",))
    rig.declare(model.request)
    await model.load()
    assert model.told == ["slots_saved", "slots_discarded"]
    assert model.cause() == "what decides whether slots are saved"
    assert model.names == []


async def test_another_model_file_gets_nothing_of_it(talk: Talk, tiny_gguf: Path) -> None:
    model = talk()
    await model.hold()
    await model.unload()
    os.utime(tiny_gguf, (1, 1))
    await model.load()
    assert (model.told[-1], model.cause()) == ("slots_discarded", "the content of the model file")


async def test_nothing_is_saved_of_a_model_file_that_was_replaced_meanwhile(
    talk: Talk, tiny_gguf: Path
) -> None:
    model = talk()
    await model.hold()
    os.utime(tiny_gguf, (1, 1))
    await model.unload()
    assert (model.told, model.cause(), model.names) == (["slots_discarded"], "changed", [])


async def test_a_record_that_others_may_have_written_is_not_believed(talk: Talk) -> None:
    model = talk()
    await model.hold()
    await model.unload()
    (model.folder / "resume.json").chmod(0o666)
    await model.load()
    assert (model.told, model.names) == (["slots_saved"], [])


async def test_a_slot_file_that_is_a_link_is_not_restored(rig: FleetRig, talk: Talk, tmp_path: Path) -> None:
    model = talk()
    await model.hold(1)
    await model.unload()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text('{"tokens": 5}')
    file = next(path for path in model.folder.iterdir() if path.suffix == ".bin")
    file.unlink()
    file.symlink_to(elsewhere)
    await model.load()
    assert (model.told[-1], model.cause()) == ("slots_discarded", "slot_state_refused")
    assert (model.names, elsewhere.read_text()) == ([], '{"tokens": 5}')


async def test_a_folder_that_is_a_link_is_not_used(rig: FleetRig, talk: Talk, tmp_path: Path) -> None:
    model = talk()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    model.folder.parent.mkdir(parents=True, mode=0o700)
    model.folder.parent.parent.chmod(0o700)
    model.folder.symlink_to(elsewhere)
    view = await model.hold(1)
    await model.unload()
    assert view.plan is not None
    assert "slot_folder_unusable" in {reason.code for reason in view.plan.reasons}
    assert (model.told, list(elsewhere.iterdir())) == ([], [])


async def test_a_reload_carries_the_conversations_over(rig: FleetRig, talk: Talk) -> None:
    model = talk()
    old = await model.hold()
    rig.fleet.reload("m", by="test")
    while rig.instance("m").pid in (old.pid, None):
        await asyncio.sleep(0.02)
    await rig.until("m", State.READY)
    assert model.told == ["slots_saved", "slots_restored"]


async def test_a_replacement_that_cannot_use_them_is_not_held_up(rig: FleetRig, talk: Talk) -> None:
    model = talk()
    await model.hold()
    rig.declare(changed(model.request, n_ctx=2048))
    while "replaced" not in rig.kinds():
        await asyncio.sleep(0.02)
    assert (model.told, model.names) == ([], [])


async def test_a_model_that_is_no_longer_declared_leaves_no_conversation(rig: FleetRig, talk: Talk) -> None:
    model = talk()
    await model.hold()
    rig.declare()
    await rig.until_gone("m")
    assert (model.told, model.names) == ([], [])


async def test_a_request_that_comes_while_slots_are_saved_is_served_at_once(
    rig: FleetRig, talk: Talk
) -> None:
    model = talk(live={"load": "on-demand", "idle_after_s": 0.2}, script={"hang": ["/slots/0"]})
    rig.declare(model.request)
    client = Client(rig.fleet, model.request)
    await client.chat()
    view = await rig.until("m", State.DRAINING)
    while not model.folder.is_dir():
        await asyncio.sleep(0.02)
    answer = await asyncio.wait_for(client.chat("Are you there?"), 10.0)
    assert answer.state.complete
    assert rig.instance("m").pid == view.pid
    assert model.names == []
    await client.close()


async def test_the_end_of_the_manager_saves_for_the_next_one(
    rig: FleetRig, talk: Talk, tmp_path: Path
) -> None:
    model = talk()
    await model.hold()
    rig.shop.server = replace(rig.shop.server, shutdown_s=30.0)
    await rig.fleet.close(30.0)
    assert model.told == ["slots_saved"]
    async with next_manager(rig.directory) as after:
        again = Conversations(after, model.request)
        await again.hold(0)
        assert again.told == ["slots_restored"]


async def test_a_manager_with_little_time_saves_nothing(rig: FleetRig, talk: Talk) -> None:
    model = talk()
    await model.hold()
    rig.shop.server = replace(rig.shop.server, shutdown_s=5.0)
    await rig.fleet.close(5.0)
    assert (model.told, model.cause(), model.names) == (["slots_discarded"], "given_up", [])


async def test_a_model_that_makes_room_keeps_the_longest_conversation_though_a_request_waits(
    rig: FleetRig, fake_engine: MakeFake, tmp_path: Path
) -> None:
    card = "Vulkan0: a card (2500 MiB, 2500 MiB free)"
    engine: FakeEngine = fake_engine(**TALKS, devices=[card])
    path, pool = write_large_model(tmp_path / "large.gguf"), PoolLimits("gpu", ("auto",), offload="forbid")
    first, second = (
        request_for(engine, path, name, live={"load": "on-demand"}, n_ctx=8192, pool=pool)
        for name in ("first", "second")
    )
    model = Conversations(rig, first)
    rig.declare(first, second)
    clients = Client(rig.fleet, first), Client(rig.fleet, second)
    await asyncio.gather(clients[0].chat("A long story. " * 50), clients[0].chat())
    await clients[1].chat()
    assert "evicted" in rig.kinds("first")
    record = json.loads((model.folder / "resume.json").read_text())
    assert [slot["id"] for slot in record["slots"]] == [0]
    assert record["slots"][0]["n_saved"] > 100
    for client in clients:
        await client.close()


def test_a_request_that_waits_is_held_up_by_one_slot() -> None:
    patience = Patience(lambda: True)
    assert not patience.is_over
    patience.has_saved = True
    assert patience.is_over
    assert not Patience(lambda: False, has_saved=True).is_over
