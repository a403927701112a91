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
from tests.support.model_files import write_tiny_gguf
from tests.support.waiting import wait_until

REPO = "org/Tiny-GGUF"
MIB = 2**20
WAIT_S = 60.0


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
    kept = wait_until(lambda: unfinished_bytes(tmp_path) > MIB and unfinished_bytes(tmp_path), WAIT_S)
    workers = psutil.Process(first.pid).children(recursive=True)
    os.kill(first.pid, signal.SIGKILL)
    gone, alive = psutil.wait_procs(workers, timeout=WAIT_S)
    assert (len(gone) > 0, alive) == (True, [])
    hub.faults.bytes_per_s = 0
    hub.seen.clear()
    second = paddock_up(tables, environment=environment)
    wait_until(lambda: second.model("m")["state"] == "ready", WAIT_S, "the model to serve")
    (content,) = hub.served("/content")
    assert int(content.headers["range"].removeprefix("bytes=").rstrip("-")) >= kept


def test_a_model_that_is_to_see_is_fetched_with_its_projector(
    paddock_up: StartPaddock, hub: HubStandIn, tmp_path: Path, fake_engine_path: Callable[..., Path]
) -> None:
    eyes = write_tiny_gguf(tmp_path / "eyes.gguf", architecture="clip").read_bytes()
    hub.repos[REPO].files["mmproj-F16.gguf"] = eyes
    tables = f'[engines.default]\nbinary = "{fake_engine_path()}"\n' + (
        f'[models.m]\nsource = "hf:{REPO}:Q4_K_M"\nload = "at-start"\nprojector = "auto"\n'
    )
    environment = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf")}
    running = paddock_up(tables, environment=environment)
    wait_until(lambda: running.model("m")["state"] == "ready", WAIT_S, "the model to serve")
    argv = running.model("m")["instances"][0]["plan"]["argv"]
    projector = Path(argv[argv.index("--mmproj") + 1])
    assert (projector.name, projector.read_bytes()) == ("mmproj-F16.gguf", eyes)


def unfinished_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.incomplete"))
