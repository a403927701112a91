"""Sources to local files: shared, cancelled, killed, offline, and with other processes about (02 §8-10)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from framework.models.hub.process import child_environment
from framework.models.hub.sources import HubSources
from framework.models.hub.wire import Job, Patience
from framework.values.instance import LoadProgress
from framework.values.reason import Reason, Refused
from framework.values.request import ModelSource
from tests.models.hub.conftest import PATIENCE, REPO, gguf_bytes, variant
from tests.support.hub_stand_in import HubStandIn
from tests.support.waiting import eventually

FILE = "Tiny-Q4_K_M.gguf"
WANTED = variant("Q4_K_M")
MIB = 2**20
WAIT_S = 20.0


@pytest.fixture
def data(hub: HubStandIn, tmp_path: Path) -> bytes:
    """A model of four megabytes, published."""
    data = gguf_bytes(tmp_path, padding=4 * MIB)
    hub.add(REPO, {FILE: data, "Tiny-Q8_0.gguf": data[:-100]})
    return data


@pytest.fixture
def worker(
    hub: HubStandIn, environ: dict[str, str], cache: Path
) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Start download processes of another manager; they are ended by their ids."""
    started = []

    def start() -> subprocess.Popen[bytes]:
        job = Job("fetch", REPO, str(cache), variant="Q4_K_M", patience=PATIENCE)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "framework.models.hub.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(environ, str(cache)),
        )
        assert process.stdin is not None
        process.stdin.write(job.to_line())
        process.stdin.flush()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()


def children() -> list[psutil.Process]:
    """Our own fetching processes; a browser of other tests may be a child as well."""
    return [child for child in psutil.Process().children() if "hub" in " ".join(child.cmdline())]


def unfinished_bytes(cache: Path) -> int:
    return sum(path.stat().st_size for path in cache.rglob("*.incomplete"))


async def refusal(sources: HubSources, source: ModelSource = WANTED) -> tuple[Reason, bool]:
    with pytest.raises(Refused) as caught:
        await sources.resolve_source(source)
    return caught.value.failure.reason, caught.value.failure.retryable


async def test_a_missing_model_is_fetched_and_then_found_without_asking(
    sources: HubSources, hub: HubStandIn, data: bytes
) -> None:
    shown: list[LoadProgress] = []
    first = await sources.resolve_source(WANTED, shown.append)
    assert first.main.read_bytes() == data
    assert (first.from_cache, first.fetched_bytes, first.label) == (False, len(data), "Q4_K_M")
    assert shown[-1] == LoadProgress("fetching", len(data), len(data), 1.0, FILE, shown[-1].eta_s)
    hub.seen.clear()
    second = await sources.resolve_source(WANTED)
    assert (second.main, second.from_cache) == (first.main, True)
    assert hub.seen == []


async def test_two_who_want_the_same_share_one_download(
    sources: HubSources, hub: HubStandIn, data: bytes
) -> None:
    hub.faults.bytes_per_s = 8 * MIB
    shown: list[LoadProgress] = []
    first = asyncio.create_task(sources.resolve_source(WANTED))
    second = asyncio.create_task(sources.resolve_source(variant("q4_k_m", "ORG/tiny-gguf"), shown.append))
    hub.repos["ORG/tiny-gguf"] = hub.repos[REPO]
    results = await asyncio.gather(first, second)
    assert results[0].main == results[1].main
    assert shown
    assert len(hub.served("/content")) == 1


async def test_two_variants_of_a_repository_come_one_after_the_other(
    sources: HubSources, hub: HubStandIn, data: bytes
) -> None:
    hub.faults.bytes_per_s = 4 * MIB
    found = await asyncio.gather(sources.resolve_source(WANTED), sources.resolve_source(variant("Q8_0")))
    assert [one.main.stat().st_size for one in found] == [len(data), len(data) - 100]


async def test_the_one_who_stays_gets_the_model(sources: HubSources, hub: HubStandIn, data: bytes) -> None:
    hub.faults.bytes_per_s = 8 * MIB
    stays = asyncio.create_task(sources.resolve_source(WANTED))
    leaves = asyncio.create_task(sources.resolve_source(WANTED))
    await eventually(lambda: hub.served("/content"), WAIT_S)
    leaves.cancel()
    assert (await stays).main.read_bytes() == data
    assert leaves.cancelled()


async def test_cancelling_ends_the_process_and_keeps_what_came(
    sources: HubSources, hub: HubStandIn, data: bytes, cache: Path
) -> None:
    hub.faults.bytes_per_s = 2 * MIB
    waiting = asyncio.create_task(sources.resolve_source(WANTED))
    await eventually(lambda: unfinished_bytes(cache) >= MIB, WAIT_S)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert children() == []
    kept = unfinished_bytes(cache)
    hub.faults.bytes_per_s = 0
    again = await sources.resolve_source(WANTED)
    assert again.main.read_bytes() == data
    assert again.fetched_bytes == len(data) - kept


async def test_a_killed_download_is_an_answer_and_the_next_goes_on(
    sources: HubSources, hub: HubStandIn, data: bytes, cache: Path
) -> None:
    hub.faults.bytes_per_s = 2 * MIB
    waiting = asyncio.create_task(refusal(sources))
    await eventually(lambda: unfinished_bytes(cache) >= MIB, WAIT_S)
    os.kill(children()[0].pid, signal.SIGKILL)
    reason, retryable = await waiting
    assert (reason.code, retryable) == ("download_failed", True)
    hub.faults.bytes_per_s = 0
    assert (await sources.resolve_source(WANTED)).fetched_bytes < len(data)


async def test_the_loop_goes_on_while_a_download_runs(
    sources: HubSources, hub: HubStandIn, data: bytes
) -> None:
    hub.faults.bytes_per_s = 4 * MIB
    turns_after: list[int] = []
    waiting = asyncio.create_task(sources.resolve_source(WANTED, lambda _: turns_after.append(turns)))
    turns = 0
    while not waiting.done():
        await asyncio.sleep(0.01)
        turns += 1
    await waiting
    # Somebody else had a turn between most pieces of news.
    assert len(set(turns_after)) > len(turns_after) // 2 > 0


async def test_a_download_of_another_process_is_waited_for(
    sources: HubSources,
    hub: HubStandIn,
    data: bytes,
    cache: Path,
    worker: Callable[[], subprocess.Popen[bytes]],
) -> None:
    hub.faults.bytes_per_s = 2 * MIB
    worker()
    await eventually(lambda: unfinished_bytes(cache) > 0, WAIT_S)
    shown: list[LoadProgress] = []
    found = await sources.resolve_source(WANTED, shown.append)
    assert found.main.read_bytes() == data
    assert len(hub.served("/content")) == 1
    assert len({progress.loaded_bytes for progress in shown}) > 1


async def test_a_process_that_fetches_nothing_makes_the_repository_busy(
    environ: dict[str, str],
    hub: HubStandIn,
    data: bytes,
    cache: Path,
    worker: Callable[[], subprocess.Popen[bytes]],
) -> None:
    hub.faults.bytes_per_s = 2 * MIB
    holder = worker()
    await eventually(lambda: unfinished_bytes(cache) > 0, WAIT_S)
    holder.send_signal(signal.SIGSTOP)
    impatient = HubSources(environ, patience=Patience(busy_s=0.5))
    reason, retryable = await refusal(impatient)
    assert (reason.code, retryable) == ("repo_busy", True)
    assert str(holder.pid) in reason.message


async def test_a_download_process_ends_with_its_manager(
    hub: HubStandIn, data: bytes, cache: Path, worker: Callable[[], subprocess.Popen[bytes]]
) -> None:
    hub.faults.bytes_per_s = MIB
    process = worker()
    await eventually(lambda: unfinished_bytes(cache) > 0, WAIT_S)
    assert process.stdin is not None
    process.stdin.close()
    assert await asyncio.to_thread(process.wait, WAIT_S) != 0


async def test_offline_a_cached_model_serves(
    sources: HubSources, environ: dict[str, str], hub: HubStandIn, data: bytes
) -> None:
    await sources.resolve_source(WANTED)
    hub.seen.clear()
    offline = HubSources({**environ, "HF_HUB_OFFLINE": "1"})
    assert (await offline.resolve_source(WANTED)).from_cache
    assert hub.seen == []


@pytest.mark.parametrize(
    ("variables", "code", "retryable"),
    [
        pytest.param({"HF_HUB_OFFLINE": "1"}, "model_missing", False, id="by choice"),
        pytest.param({"HF_ENDPOINT": "http://nowhere.invalid"}, "download_failed", True, id="no address"),
    ],
)
async def test_offline_a_missing_model_is_refused_with_the_cause(
    environ: dict[str, str], variables: dict[str, str], code: str, retryable: bool
) -> None:
    reason, passes = await refusal(HubSources({**environ, **variables}))
    assert (reason.code, passes) == (code, retryable)
    assert "hf:org/Tiny-GGUF:Q4_K_M" in reason.message


async def test_a_model_that_must_be_here_is_refused_with_the_command(sources: HubSources) -> None:
    with pytest.raises(Refused) as caught:
        sources.require_local(WANTED)
    assert "paddock pull" in caught.value.failure.reason.remedy


async def test_without_the_clients_package_the_command_to_install_it_is_told(
    environ: dict[str, str], tmp_path: Path, data: bytes
) -> None:
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    missing = 'raise ModuleNotFoundError("not installed", name="huggingface_hub")\n'
    (shadow / "huggingface_hub.py").write_text(missing)
    reason, retryable = await refusal(HubSources({**environ, "PYTHONPATH": str(shadow)}))
    assert (reason.code, retryable) == ("download_failed", False)
    assert "pip install huggingface_hub" in reason.remedy


async def test_headers_come_without_the_model(
    sources: HubSources, data: bytes, cache: Path, tmp_path: Path
) -> None:
    model = await sources.fetch_headers(WANTED, tmp_path / "sparse")
    assert (model.paths, model.total_bytes) == ((FILE,), len(data))
    assert model.stand_ins[0].stat().st_size == len(data)
    assert set(model.listing.paths) == {FILE, "Tiny-Q8_0.gguf"}
    assert not cache.exists()


async def test_what_a_listing_decided_is_kept(
    sources: HubSources, environ: dict[str, str], hub: HubStandIn, data: bytes
) -> None:
    first = await sources.resolve_source(ModelSource(repo=REPO))
    assert first.label == "Q4_K_M"
    hub.repos[REPO].files = {"Tiny-Q8_0.gguf": data}
    offline = HubSources({**environ, "HF_HUB_OFFLINE": "1"})
    assert (await offline.resolve_source(ModelSource(repo=REPO))).main == first.main


async def test_a_local_path_is_its_own_answer(sources: HubSources, tmp_path: Path) -> None:
    source = ModelSource(path=tmp_path / "m.gguf")
    assert (await sources.resolve_source(source)).main == source.path
