"""One attempt to bring up an engine: spawn, wait for health, make sure that it is ours (06 §8, §9).

Called by runtime.ladder, which decides what to change between attempts.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from framework.engines.redaction import is_secret_name
from framework.runtime.child import Child
from framework.runtime.engine_client import EngineClient
from framework.runtime.kept import Kept
from framework.runtime.logs import LogBuffer
from framework.runtime.ports import PortTable
from framework.runtime.process import Ended, EngineProcess
from framework.runtime.records import Record, Trace
from framework.runtime.shielded import finish

# 06 §9.1 polls every 0.5 s; small models are up in less than that, so the first seconds look more often.
POLL_S = 0.5
EAGER_POLL_S = 0.1
EAGER_FOR_S = 5.0
OK = 200
# Shorter values stand in too many lines by chance, and are no secrets.
SHORTEST_SECRET = 6
# Our own engine knows the key of its launch.
REFUSED = (401, 403)

Outcome = Literal["healthy", "exited", "timeout", "port_taken"]


@dataclass(frozen=True)
class Running:
    """A started engine: its process, where it listens, what opens it. The key is never shown."""

    child: EngineProcess
    port: int
    key: str | None = field(repr=False)


@dataclass(frozen=True)
class Site:
    """Where launches of one replica happen and what they share with the rest of the fleet."""

    log: LogBuffer
    log_dir: Path
    run_dir: Path
    ports: PortTable
    client: EngineClient
    slot_folder: Path
    """For the slots that are saved of the replica."""
    trace: Trace

    async def clean(self) -> None:
        """Remove the run directory; one that is gone already is fine."""
        await asyncio.to_thread(shutil.rmtree, self.run_dir, ignore_errors=True)


@dataclass(frozen=True)
class Answer:
    """How an attempt ended; `props` is what the engine says of itself when it is healthy."""

    outcome: Outcome
    props: Mapping[str, Any]
    seconds: float


async def start(
    site: Site,
    argv: list[str],
    env: Mapping[str, str],
    *,
    port: int,
    key: str | None,
    log_name: str,
    fingerprint: str,
) -> Running:
    """Spawn the engine with its output going to a fresh log file, and note it down. Raises OSError."""
    site.log.expand()
    _hide(site, env, key)
    site.log.open_file(site.log_dir / log_name)

    async def spawned() -> EngineProcess:
        child: EngineProcess
        if site.trace.outlives:
            output = site.trace.output
            child = await Kept.spawn(argv, env, log=site.log, cwd=site.run_dir, output=output)
        else:
            child = await Child.spawn(argv, env, log=site.log, cwd=site.run_dir)
        await asyncio.to_thread(
            site.trace.begin, child.pid, port, key, program=argv[0], fingerprint=fingerprint
        )
        return child

    spawning = asyncio.ensure_future(spawned())
    try:
        return Running(await asyncio.shield(spawning), port, key)
    except BaseException:
        await finish(_undo(site, spawning))
        raise


def take_over(site: Site, record: Record, env: Mapping[str, str], *, log_name: str) -> Running:
    """Go on with the process of a record, which was proven to be ours; `env` is what it was started with."""
    site.ports.claim(record.port)
    _hide(site, env, record.key)
    site.log.shrink()
    site.log.open_file(site.log_dir / log_name)
    process = Kept.adopt(record.pid, record.identity, log=site.log, output=site.trace.output)
    return Running(process, record.port, record.key)


def _hide(site: Site, env: Mapping[str, str], key: str | None) -> None:
    """What must never appear in the log."""
    hidden = [value for name, value in env.items() if is_secret_name(name) and len(value) >= SHORTEST_SECRET]
    site.log.secrets = tuple(sorted({*hidden, *([key] if key else [])}, key=len, reverse=True))


async def wait_ready(
    site: Site, running: Running, *, model_path: Path, timeout_s: Callable[[], float]
) -> Answer:
    """Poll until healthy and proven ours, exited, or out of time. `timeout_s` is read anew: it is live."""
    begin = time.monotonic()
    while True:
        waited = time.monotonic() - begin
        if not running.child.alive:
            await running.child.wait_output()
            return Answer("exited", {}, waited)
        if waited > timeout_s():
            return Answer("timeout", {}, waited)
        if await site.client.healthy(running.port):
            status, props = await site.client.props(running.port, running.key)
            ours = is_ours(status, props, model_path)
            if ours is not None and running.child.alive:
                waited = time.monotonic() - begin
                return Answer("healthy" if ours else "port_taken", props, waited)
        pause = EAGER_POLL_S if waited < EAGER_FOR_S else POLL_S
        await asyncio.wait({running.child.exited}, timeout=pause)


def is_ours(status: int | None, props: Mapping[str, Any], model_path: Path) -> bool | None:
    """06 §9.6: whether our engine answers on our port, or a stranger; None while that is not known."""
    if status in REFUSED:
        return False
    if status != OK:
        return None
    return props.get("model_path") in (None, "", str(model_path))


async def stop(site: Site, running: Running, *, kill: bool = False) -> Ended:
    """End the process and its group and give everything back, whatever happens to the caller (07 §5.3)."""
    return await finish(_stop(site, running, kill=kill))


async def leave(site: Site, running: Running) -> None:
    """Let go of a process that outlives us: its record, its output and its port stay as they are."""
    if isinstance(running.child, Kept):
        await finish(running.child.let_go())
    site.log.close_file()


async def _undo(site: Site, spawning: asyncio.Future[EngineProcess]) -> None:
    """A spawn that nobody wants any more, or that failed, leaves nothing."""
    with contextlib.suppress(OSError):
        child = await spawning
        await child.kill()
        await child.close()
    await asyncio.to_thread(site.trace.remove)
    site.log.close_file()


async def _stop(site: Site, running: Running, *, kill: bool) -> Ended:
    ended = await (running.child.kill() if kill else running.child.terminate())
    await running.child.close()
    # 07 §5.4: what would not die may still hold its port.
    if not ended.survivors:
        site.ports.release(running.port)
        await asyncio.to_thread(site.trace.remove)
    site.log.close_file()
    return ended
