"""Noticing that the manifest changed, where the system does not tell."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from framework.manifest.load import Loaded
from framework.reconcile.watch import Watcher
from tests.reconcile.test_apply import FIRST, Bench
from tests.support.waiting import eventually

SECOND = replace(FIRST, sha256="2" * 64)


async def test_a_manifest_in_a_folder_of_any_name_is_reloaded_and_that_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    folder = tmp_path / os.fsdecode(b"dd\xff")
    folder.mkdir()
    (path := folder / "serve.toml").write_text("")
    bench = Bench()
    bench.file = Loaded(FIRST, (), FIRST.sha256, (path,))
    bench.reconciler.begin()
    watcher = Watcher(bench.reconciler)
    watching = asyncio.create_task(watcher.run())
    try:
        await eventually(lambda: bool(caplog.messages))
        bench.file = Loaded(SECOND, (), SECOND.sha256, (path,))
        path.write_text("# changed")
        await eventually(lambda: bench.current.manifest is SECOND)
        path.write_text("# changed again")
        await asyncio.sleep(0)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    (message,) = caplog.messages
    assert "dd\\xff" in message
    assert not [record for record in caplog.records if record.exc_info]
