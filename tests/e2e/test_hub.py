"""A download survives the end of `up`: nothing is left running, and the next one goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.conftest import StartPaddock
from tests.support.hub_stand_in import HubStandIn
from tests.support.waiting import wait_until

REPO = "org/Tiny-GGUF"
MIB = 2**20


@pytest.fixture
def hub(tiny_gguf: Path) -> Iterator[HubStandIn]:
    """A stand-in with one model of some megabytes."""
    with HubStandIn() as stand_in:
        stand_in.add(REPO, {"Tiny-Q4_K_M.gguf": tiny_gguf.read_bytes() + bytes(4 * MIB)})
        yield stand_in


def test_a_killed_manager_leaves_no_download_and_the_next_one_goes_on(
    paddock_up: StartPaddock, hub: HubStandIn, tmp_path: Path, fake_engine_path: Callable[..., Path]
) -> None:
    tables = f'[engines.default]\nbinary = "{fake_engine_path()}"\n' + (
        f'[models.m]\nsource = "hf:{REPO}:Q4_K_M"\nload = "at-start"\n'
    )
    environment = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf")}
    hub.faults.bytes_per_s = MIB
    first = paddock_up(tables, environment=environment)
    kept = wait_until(lambda: unfinished_bytes(tmp_path) > MIB and unfinished_bytes(tmp_path), 20.0)
    workers = psutil.Process(first.pid).children(recursive=True)
    os.kill(first.pid, signal.SIGKILL)
    gone, alive = psutil.wait_procs(workers, timeout=10.0)
    assert (len(gone) > 0, alive) == (True, [])
    hub.faults.bytes_per_s = 0
    hub.seen.clear()
    second = paddock_up(tables, environment=environment)
    wait_until(lambda: second.model("m")["state"] == "ready", 20.0, "the model to serve")
    (content,) = hub.served("/content")
    assert int(content.headers["range"].removeprefix("bytes=").rstrip("-")) >= kept


def unfinished_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.incomplete"))
