"""What engines print and hold: floods, secrets, long lines, folders in the way."""

from __future__ import annotations

import asyncio
import shutil
import stat
from pathlib import Path

from framework.runtime.child import READ_SIZE
from framework.runtime.logs import LINE_LIMIT, LINES_PER_S, START_LINES, LogBuffer
from framework.runtime.private import make_private
from framework.values.instance import State
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, request_for
from tests.support.waiting import eventually


def test_a_flood_is_dropped_and_counted() -> None:
    now = [0.0]
    log = LogBuffer(monotonic_s=lambda: now[0])
    log.extend(["x"] * (START_LINES + 50))
    now[0] = 1.0
    log.append("after")
    texts = [line.text for line in log.last(2)]
    assert texts == ["after", f"... 50 lines dropped: more than {LINES_PER_S} in a second"]


def test_a_secret_that_would_be_cut_in_two_is_hidden_whole() -> None:
    log = LogBuffer()
    log.secrets = ("k" * 43,)
    log.append("x" * (LINE_LIMIT - 10) + "k" * 43)
    assert "k" not in log.last(1)[0].text


def test_folders_are_private_at_every_level(tmp_path: Path) -> None:
    make_private(tmp_path / "a" / "b" / "c")
    levels = (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c")
    assert [stat.S_IMODE(level.stat().st_mode) for level in levels] == [0o700] * 3


async def test_a_secret_of_the_environment_is_in_no_log_reason_or_event(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(exit_code=1, stderr=["error: cannot use token hunter2hunter2"])
    rig.declare(request_for(engine, tiny_gguf, env={"MY_SECRET_TOKEN": "hunter2hunter2"}))
    view = await rig.until("m", State.FAILED)
    log = rig.fleet.log("m")
    assert log is not None
    shown = [str(view.last_error), str(rig.events.recent(limit=1000)), str(log.last(999))]
    assert "cannot use token" in shown[0]
    assert not any("hunter2" in text for text in shown)


async def test_a_flooding_engine_does_not_keep_others_from_their_turn(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    line_bytes = 8
    rig.declare(request_for(fake_engine(flood_lines=100_000, flood_line_bytes=line_bytes - 1), tiny_gguf))
    log: LogBuffer | None = None
    most_lines_per_turn = seen = 0
    while seen < START_LINES:
        await asyncio.sleep(0)
        log = log or rig.fleet.log("m")
        newest = log.newest if log else 0
        most_lines_per_turn, seen = max(most_lines_per_turn, newest - seen), newest
    await rig.until("m", State.READY)
    assert log is not None
    assert len(log.last(START_LINES * 2)) <= START_LINES
    # One piece of the pipe is read between two turns of the others, however much of it waits.
    assert most_lines_per_turn <= READ_SIZE // line_bytes + 1


async def test_a_state_directory_in_the_way_is_named_and_healed_by_itself(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.shop.state_dir.mkdir(parents=True)
    (rig.shop.state_dir / "run").touch()
    rig.declare(request_for(fake_engine(), tiny_gguf))
    view = await rig.until("m", State.BACKOFF)
    assert view.last_error is not None
    assert view.last_error.code == "state_dir_unusable"
    (rig.shop.state_dir / "run").unlink()
    await rig.until("m", State.READY)


async def test_a_deleted_state_directory_comes_back_private(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf))
    await rig.until("m", State.READY)
    shutil.rmtree(rig.shop.state_dir)
    rig.fleet.reload("m", by="test")
    await eventually(lambda: "replaced" in rig.kinds("m"), what="another process to serve")
    assert stat.S_IMODE(rig.shop.state_dir.stat().st_mode) == 0o700
