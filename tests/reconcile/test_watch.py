"""Noticing that the manifest changed, where the system does not tell."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from framework.manifest.load import Loaded
from framework.reconcile.watch import Watcher
from tests.reconcile.test_apply import FIRST, Bench
from tests.support.waiting import eventually

SECOND = replace(FIRST, sha256="2" * 64)


@asynccontextmanager
async def watched(path: Path) -> AsyncIterator[Bench]:
    """A manifest at a path, with somebody who looks for changes of it."""
    path.write_text("")
    bench = Bench()
    bench.file = Loaded(FIRST, (), FIRST.sha256, (path,))
    bench.reconciler.begin()
    watching = asyncio.create_task(Watcher(bench.reconciler).run())
    try:
        yield bench
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def change(bench: Bench, path: Path) -> None:
    """Another text in the file, until it is in force."""
    bench.file = Loaded(SECOND, (), SECOND.sha256, (path,))
    path.write_text("# changed")
    await eventually(lambda: bench.current.manifest is SECOND)


async def test_a_manifest_in_a_folder_of_any_name_is_reloaded_and_that_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    folder = tmp_path / os.fsdecode(b"dd\xff")
    folder.mkdir()
    async with watched(folder / "serve.toml") as bench:
        await eventually(lambda: bool(caplog.messages))
        await change(bench, folder / "serve.toml")
        (folder / "serve.toml").write_text("# changed again")
        await asyncio.sleep(0)
    (message,) = caplog.messages
    assert "dd\\xff" in message
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_file_of_any_name_beside_the_manifest_stops_no_reload(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    stray = tmp_path / os.fsdecode(b"b\xff.txt")
    async with watched(tmp_path / "serve.toml") as bench:

        def is_told() -> bool:
            # Written again and again: nobody says when the watch has begun.
            stray.write_text("x")
            return bool(caplog.messages)

        await eventually(is_told)
        await change(bench, tmp_path / "serve.toml")
    assert "b\\xff.txt" in caplog.messages[0].replace("\\\\", "\\").replace("xFF", "xff")
    assert not [record for record in caplog.records if record.exc_info]
