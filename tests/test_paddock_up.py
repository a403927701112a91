"""The `paddock_up` fixture: a real process on a manifest of the test's own, and nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.support.waiting import wait_until


def tables(engine: Path, model: Path) -> str:
    return f"""
[engines.default]
binary = "{engine}"

[models.tiny]
source = "{model}"
load = "at-start"
"""


def test_it_serves_and_ends_in_order(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    paddock = paddock_up(tables(engine.path, tiny_gguf))
    paddock.wait_state("tiny", "ready")
    assert paddock.pids() == {"tiny": [engine.starts()[0]["pid"]]}
    assert paddock.stop() == 0
    assert paddock.survivors() == []


def test_a_kill_takes_the_engine_along(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(tables(fake_engine().path, tiny_gguf))
    paddock.wait_state("tiny", "ready")
    paddock.kill()
    wait_until(lambda: not paddock.survivors(), timeout_s=5, what="the engine to die with its manager")


def test_it_can_be_run_again_on_the_same_manifest(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(tables(fake_engine().path, tiny_gguf))
    paddock.stop()
    paddock.restart()
    paddock.wait_state("tiny", "ready")


def test_commands_find_the_server(paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path) -> None:
    paddock = paddock_up(tables(fake_engine().path, tiny_gguf))
    finished = paddock.command("status", "--json")
    assert finished.returncode == 0, finished.stderr


def test_a_manager_that_ends_fails_the_wait_with_its_log(paddock_up: StartPaddock) -> None:
    with pytest.raises(AssertionError, match=r"serve\.toml:\d+:\d+"):
        paddock_up("[models.tiny]\nsource = 1\n")
