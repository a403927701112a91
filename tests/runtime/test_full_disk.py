"""A start that finds no room in the state directory is no fault of Paddock, and is tried again by itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from framework.runtime.kept import Kept
from framework.runtime.logs import LogBuffer
from framework.runtime.private import Unwritable
from framework.values.instance import State
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, request_for
from tests.support.chaos.small_disk import FileLimit


@pytest.fixture
def limit() -> Iterator[FileLimit]:
    limit = FileLimit(os.getpid())
    yield limit
    limit.free()


async def test_a_template_that_finds_no_room_is_written_later(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, limit: FileLimit
) -> None:
    request = request_for(fake_engine(), tiny_gguf, template="{{ messages[0].content }}")
    rig.declare(request)
    await rig.until("m", State.READY)
    rig.fleet.unload("m", "now", by="test")
    await rig.until("m", State.STOPPED)
    limit.fill()
    rig.fleet.load("m", by="test")
    view = await rig.until("m", State.BACKOFF, State.FAILED)
    assert view.state is State.BACKOFF
    assert view.last_error is not None
    assert view.last_error.code == "state_dir_unusable"
    assert view.last_error.evidence["path"].endswith("template.jinja")
    limit.free()
    await rig.until("m", State.READY)


async def test_what_a_kept_engine_prints_to_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    output = tmp_path / "file" / "a.out"
    with pytest.raises(Unwritable) as raised:
        await Kept.spawn(["true"], {}, log=LogBuffer(), cwd=tmp_path, output=output)
    assert raised.value.filename == str(output)
