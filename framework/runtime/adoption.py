"""Go on with processes that an earlier life of this manager left running (07 §8.7).

Who such a process is has to be proven: by its record, the start that is noted there, the program that it
executes, our mark in its environment, and answers of its own that only the noted key opens. What fails any
of it is left to runtime.sweep. Called by app before the first apply, so that what was taken over is
compared with the manifest as any running model is: replaced where that asks for something else, ended
where it no longer has it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from framework.reconcile.compare import request_digest
from framework.runtime import launch
from framework.runtime.engine_client import EngineClient
from framework.runtime.instance import Instance
from framework.runtime.launch import Running, Site
from framework.runtime.ledger import Ledger
from framework.runtime.process_identity import (
    environment_of,
    is_same,
    leads_group,
    mark_of,
    program_of,
)
from framework.runtime.records import Committed, Record, claim, read_records
from framework.runtime.remote_devices import endpoints
from framework.runtime.seeker import Seeker
from framework.telemetry.events import utc_now
from framework.values.manifest import Manifest
from framework.values.plan import REDACTED
from framework.values.request import ModelRequest

log = logging.getLogger(__name__)

# 15 §5: an engine answers these within milliseconds, whatever it works on; a swapped out one takes longer.
HANDSHAKE_S = 8.0
SILENT = f"it did not answer for its model, with its key, within {HANDSHAKE_S:g} s"
PAUSE_S = 0.25


@dataclass(frozen=True)
class LeftBehind:
    """A process of an earlier manager that was proven to be ours, and ready."""

    record: Record
    committed: Committed
    environment: Mapping[str, str]
    """What it was started with."""
    request: ModelRequest
    """What it was started for."""
    is_as_asked: bool
    """Whether the manifest asks for the same."""


async def find_left_behind(state_dir: Path, state_id: str, manifest: Manifest, client: EngineClient) -> Found:
    """All that can be taken over, one for each replica. REQUIRES: we hold the state directory."""
    proven, refused = await asyncio.to_thread(_proven, state_dir, state_id, manifest)
    answers = await asyncio.gather(*(_answers(left, client) for left in proven))
    newest: dict[tuple[str, int], LeftBehind] = {}
    for left, is_ours in sorted(
        zip(proven, answers, strict=True), key=lambda pair: pair[0].record.generation
    ):
        if not is_ours:
            refused[left.record.instance] = SILENT
            continue
        place = (left.record.model, left.record.replica)
        if place in newest:
            refused[newest[place].record.instance] = "a newer instance of the same replica serves"
        newest[place] = left
    for left in newest.values():
        await asyncio.to_thread(claim, state_dir, left.record)
    return Found(list(newest.values()), refused)


@dataclass(frozen=True)
class Found:
    """What can be taken over, and of every other instance with a record why it cannot."""

    taken: list[LeftBehind]
    refused: Mapping[str, str]


def by_model(found: Iterable[LeftBehind]) -> Mapping[str, Sequence[LeftBehind]]:
    """What was left of each model, first what the manifest does not ask for any more: by that one the
    model is compared, so that all its replicas come to be as asked."""
    grouped: dict[str, list[LeftBehind]] = {}
    for left in sorted(found, key=lambda left: (left.is_as_asked, left.record.replica)):
        grouped.setdefault(left.record.model, []).append(left)
    return grouped


def take_over(left: LeftBehind, instance: Instance, site: Site, seeker: Seeker, ledger: Ledger) -> Running:
    """Make an instance of it, with its port, its log and its memory. In one turn of the loop."""
    log_name = f"llama-{utc_now():%Y%m%dT%H%M%S}-port-{left.record.port}-taken-over.log"
    running = launch.take_over(site, left.record, left.environment, log_name=log_name)
    instance.inherit(left.committed)
    ledger.promise(
        instance,
        left.committed.plan.placement,
        endpoints(left.committed.plan),
        is_going=seeker.is_going,
        evict=seeker.evict,
        spare=seeker.spare,
    )
    return running


def still_running(state_dir: Path) -> list[int]:
    """Processes that a manager left behind which is gone, and that are there now. Blocking."""
    records = [record for record in read_records(state_dir).values() if record is not None]
    left = (one for one in records if is_same(one.owner_pid, one.owner_identity) in ("gone", "other"))
    return sorted(record.pid for record in left if is_same(record.pid, record.identity) == "same")


def _proven(state_dir: Path, state_id: str, manifest: Manifest) -> tuple[list[LeftBehind], dict[str, str]]:
    """By what the system says of the processes, before they are asked."""
    found: list[LeftBehind] = []
    refused: dict[str, str] = {}
    for record in read_records(state_dir).values():
        if record is None:
            continue
        try:
            found.append(_left_behind(record, state_id, manifest))
        except _Unproven as cause:
            refused[record.instance] = str(cause)
        except Exception:
            # One odd record must not cost the others their processes.
            log.exception("%s: its record cannot be used", record.instance)
            refused[record.instance] = "its record cannot be used; the log has the details"
    return found, refused


class _Unproven(Exception):
    """The text says what is not as it should be."""


def _left_behind(record: Record, state_id: str, manifest: Manifest) -> LeftBehind:
    """Raises _Unproven."""
    if record.state_id != state_id or record.pid == os.getpid():
        raise _Unproven("its record is not of this state directory")
    if is_same(record.owner_pid, record.owner_identity) not in ("gone", "other"):
        raise _Unproven("the manager that started it may still be there")
    if is_same(record.pid, record.identity) != "same":
        raise _Unproven("its process has gone")
    committed = record.committed
    if committed is None:
        raise _Unproven("it was not ready yet, so nobody had seen that it works")
    if not leads_group(record.pid):
        raise _Unproven("it leads no process group of its own")
    environment = environment_of(record.pid)
    if program_of(record.pid) != record.exe:
        raise _Unproven(f"it executes another file than {record.exe}")
    if mark_of(environment, state_id) != record.instance:
        raise _Unproven("its environment lacks the mark of this state directory")
    wanted = manifest.models.get(record.model)
    is_as_asked = wanted is not None and request_digest(wanted) == record.digest
    plan = committed.plan
    started = replace(
        plan.request,
        env=_restored(plan.request.env, environment),
        engine=replace(plan.request.engine, env=_restored(plan.request.engine.env, environment)),
    )
    committed = replace(committed, plan=replace(plan, env=_restored(plan.env, environment)))
    if (loaded := committed.loaded) is not None:
        whole = replace(loaded.plan, env=_restored(loaded.plan.env, environment))
        committed = replace(committed, loaded=replace(loaded, plan=whole))
    # Whatever else the record does not tell, the manifest does where it asks for the same.
    request = replace(wanted, live=started.live) if wanted is not None and is_as_asked else started
    return LeftBehind(record, committed, environment, request, is_as_asked)


def _restored(kept: Mapping[str, str], environment: Mapping[str, str]) -> Mapping[str, str]:
    """With the secrets that a record leaves out and the process itself has."""
    return {n: environment.get(n, value) if value == REDACTED else value for n, value in kept.items()}


async def _answers(left: LeftBehind, client: EngineClient) -> bool:
    """Whether the engine that we expect answers on the noted port, to the noted key."""
    record, model_path = left.record, left.committed.plan.main_gguf
    deadline = time.monotonic() + HANDSHAKE_S
    while time.monotonic() < deadline:
        if await client.healthy(record.port):
            is_ours = launch.is_ours(*await client.props(record.port, record.key), model_path)
            if is_ours is not None:
                return is_ours
        if await asyncio.to_thread(is_same, record.pid, record.identity) != "same":
            return False
        await asyncio.sleep(PAUSE_S)
    return False
