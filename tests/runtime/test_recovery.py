"""A start that breaks, as the fleet shows it: other plans, each try an event, a class at the end (06 §12)."""

from __future__ import annotations

from pathlib import Path

from framework.runtime.attempts import RUNGS
from framework.values.instance import State
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, alive, request_for
from tests.support.sized_models import write_large_model
from tests.support.start_ends import CANNOT_DIVIDE, TOO_LITTLE
from tests.support.waiting import eventually

CARDS = [f"CUDA{number}: a card (8000 MiB, 8000 MiB free)" for number in range(2)]
ABORTS = {"on": ["--split-mode tensor"], "exit_signal": "SIGABRT", "stderr": CANNOT_DIVIDE}


async def test_tensors_that_cannot_be_divided_are_planned_by_layers(
    rig: FleetRig, fake_engine: MakeFake, tmp_path: Path
) -> None:
    engine = fake_engine(devices=CARDS, faults=[ABORTS])
    model = write_large_model(tmp_path / "large.gguf")
    rig.declare(request_for(engine, model, n_ctx=8192, slots=1, tensor_parallel=True))
    view = await rig.until("m", State.READY, State.FAILED)
    assert view.state is State.READY
    assert view.result is not None
    assert [attempt.rung for attempt in view.result.attempts] == ["S", "R1"]
    first, second = (start["argv"] for start in engine.starts())
    assert "tensor" in first
    assert "tensor" not in second
    assert view.plan is not None
    assert "tensor_abort" in [reason.code for reason in view.plan.reasons]
    assert rig.event("ready")


async def test_a_later_start_does_not_try_it_again_until_it_is_told_to(
    rig: FleetRig, fake_engine: MakeFake, tmp_path: Path
) -> None:
    engine = fake_engine(devices=CARDS, faults=[ABORTS])
    model = write_large_model(tmp_path / "large.gguf")
    rig.declare(request_for(engine, model, n_ctx=8192, slots=1, tensor_parallel=True))
    await rig.until("m", State.READY)
    rig.fleet.unload("m", "now", by="test")
    await rig.until("m", State.STOPPED)
    rig.fleet.load("m", by="test")
    await rig.until("m", State.READY)
    assert ["tensor" in start["argv"] for start in engine.starts()] == [True, False, False]
    rig.fleet.reload("m", by="test")
    await eventually(lambda: "replaced" in rig.kinds("m"), what="another process to serve")
    assert ["tensor" in start["argv"] for start in engine.starts()][3:] == [True, False]


async def test_a_start_that_cannot_be_planned_again_says_why(
    rig: FleetRig, fake_engine: MakeFake, tmp_path: Path
) -> None:
    engine = fake_engine(devices=CARDS, faults=[{**ABORTS, "after_s": 1.0}])
    model = write_large_model(tmp_path / "large.gguf")
    rig.declare(request_for(engine, model, n_ctx=8192, slots=1, tensor_parallel=True))

    def is_loading() -> bool:
        log = rig.fleet.log("m")
        return log is not None and any("initializing" in line.text for line in log.last(99))

    await eventually(is_loading, what="the engine to have read the model")
    model.unlink()
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "model_missing"
    assert view.result is not None
    assert [attempt.rung for attempt in view.result.attempts] == ["S"]


async def test_a_plan_that_was_too_large_is_made_smaller_and_the_tries_are_told_together(
    rig: FleetRig, fake_engine: MakeFake, tmp_path: Path
) -> None:
    engine = fake_engine(devices=CARDS[:1], exit_code=1, stderr=TOO_LITTLE, faulty_starts=1)
    rig.declare(request_for(engine, write_large_model(tmp_path / "large.gguf"), n_ctx=0, slots=1))
    view = await rig.until("m", State.READY, State.FAILED)
    assert view.state is State.READY
    assert view.result is not None
    assert [attempt.n for attempt in view.result.attempts] == [1, 2]
    assert view.plan is not None
    assert "planned_smaller" in [reason.code for reason in view.plan.reasons]


async def test_each_try_is_an_event_that_says_what_was_changed(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(faults=[{"on": ["--flash-attn on"], "exit_signal": "SIGSEGV"}])
    rig.declare(request_for(engine, tiny_gguf))
    view = await rig.until("m", State.READY, State.FAILED)
    assert view.state is State.READY
    told = [event.message for event in rig.events.recent(kind="attempt", limit=100)]
    rungs = [attempt.rung for attempt in view.result.attempts] if view.result else []
    assert rungs[-1] == "R2"
    assert all(any(RUNGS[rung] in message for message in told) for rung in rungs)
    assert rig.event("degraded").reason is not None


async def test_a_start_that_nothing_saves_ends_failed_with_its_class_and_no_process(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(faults=[{"exit_signal": "SIGSEGV", "stderr": ["E x: an error of some kind"]}])
    rig.declare(request_for(engine, tiny_gguf))
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "start_failed"
    assert "an error of some kind" in view.last_error.message
    starts = engine.starts()
    assert len(starts) == len(rig.events.recent(kind="attempt", limit=100)) <= 4
    assert alive(start["pid"] for start in starts) == []
