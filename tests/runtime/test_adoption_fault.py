"""A process that was proven to be ours and cannot be taken over all the same costs no other its process."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from framework.runtime.adoption import LeftBehind
from framework.runtime.process_identity import start_identity
from framework.runtime.records import VERSION, Committed, Record
from framework.telemetry.events import utc_now
from framework.values.instance import State
from framework.values.naming import instance_name
from framework.values.plan import LaunchResult
from tests.conftest import MakeFake
from tests.planning.test_memory_drift import BINARY
from tests.runtime.conftest import FleetRig, alive, request_for
from tests.support.launch_plans import a_plan
from tests.support.waiting import eventually

Leave = Callable[..., LeftBehind]


@pytest.fixture
def leave(rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path) -> Iterator[Leave]:
    """Makes what an earlier manager left: a process that does nothing, and its record."""
    processes: list[subprocess.Popen[bytes]] = []

    def make(name: str, port: int, **committed: object) -> LeftBehind:
        processes.append(subprocess.Popen(["sleep", "300"], start_new_session=True))
        pid = processes[-1].pid
        request = request_for(fake_engine(), tiny_gguf, name)
        plan = replace(a_plan(BINARY), request=request)
        whole = Committed(plan, LaunchResult("ready", slots=1, context=1024), utc_now(), 0)
        record = Record(
            *(VERSION, instance_name(name, 0, 1), name, 0, 1, pid, start_identity(pid), "/bin/sleep", port),
            *("test", 1, "proc:1", utc_now(), "0" * 64, "0" * 64, "key"),
            committed=replace(whole, **committed),
        )
        assert record.committed is not None
        return LeftBehind(record, record.committed, {}, request, is_as_asked=True)

    yield make
    for process in processes:
        process.kill()
        process.wait()


async def test_one_that_cannot_be_taken_over_is_ended_and_the_others_serve(
    rig: FleetRig, leave: Leave
) -> None:
    odd, sound = leave("odd", 40001, ready_at=None), leave("sound", 40002)
    rig.fleet.adopt([odd, sound])
    assert [view.request.id for view in rig.fleet.views()] == ["sound"]
    assert rig.instance("sound").state is State.READY
    await eventually(lambda: not alive([odd.record.pid]), 20.0)
    assert alive([sound.record.pid])
    told = rig.event("orphan")
    assert told.reason is not None
    assert told.reason.code == "not_taken_over"
    assert "odd.0@1" in told.message
    assert [resident.model for resident in rig.shop.ledger.residents()] == ["sound"]
