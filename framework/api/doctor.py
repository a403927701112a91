"""What is wrong on this machine and how to fix it: the checks of `paddock doctor` (00 §5).

Called by the command, without a server, and by the route `/doctor`. Every check that is not ok has a reason
with a remedy; the reason of one that is ok is worth knowing. Starts engine binaries for their help text only.
"""

from __future__ import annotations

import asyncio
import platform
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from framework.api.answers import DevicesAnswer, DoctorCheck
from framework.api.facts import gpu_not_listed, list_all_devices, list_engines
from framework.certificate_dates import certificate_reason, ends_at
from framework.engines.probe import CapabilityCache
from framework.hardware.driver import loaded_driver
from framework.hardware.membership import servers_of
from framework.manifest.load import Loaded
from framework.models.drafter import find_drafter
from framework.models.facts import FactsReader
from framework.models.file_set import check_model_file
from framework.models.hub.facts import source_text
from framework.models.hub.mode import HubMode, hub_mode
from framework.models.hub.sources import HubSources
from framework.planning.speculation.drafter_source import takes_drafter
from framework.runtime.adoption import still_running
from framework.runtime.fetching import local_files
from framework.telemetry.events import utc_now
from framework.values.manifest import Manifest
from framework.values.reason import Reason, Refused
from framework.values.request import ModelRequest

# Logs of a dozen models and their saved prompt caches; below that, starts begin to fail in odd ways.
LEAST_DISK_BYTES = 2**30
GIB = 2**30


@dataclass(frozen=True)
class Surroundings:
    """What the caller found out itself: the state directory, what is wrong with it, with the listener."""

    state_dir: Path
    state_dir_fault: Reason | None
    listener_fault: Reason | None


async def examine(
    loaded: Loaded,
    environ: Mapping[str, str],
    probes: CapabilityCache,
    around: Surroundings,
    list_them: Callable[[], Awaitable[DevicesAnswer]] | None = None,
) -> tuple[DoctorCheck, ...]:
    """All checks, in the order in which their faults should be fixed.

    `list_them` lists the devices of a manager that runs, which knows what servers it uses itself.
    """
    checks = [
        DoctorCheck(
            "python", ok=True, reason=Reason("python_version", f"Python {platform.python_version()}.")
        ),
        _check("state directory", around.state_dir_fault or _state_dir(around.state_dir)),
        *_kept_engines(await asyncio.to_thread(still_running, around.state_dir)),
        _check("disk", await asyncio.to_thread(_disk_fault, around.state_dir)),
        _check("manifest", _manifest_fault(loaded) or _manifest_warnings(loaded)),
        _check("listener", around.listener_fault),
        *await asyncio.to_thread(_certificate, loaded),
    ]
    if loaded.manifest is not None:
        manifest = loaded.manifest
        devices = await (list_them or (lambda: list_all_devices(manifest, environ)))()
        checks += await _engine_checks(manifest, environ, probes)
        checks += device_checks(manifest, devices, loaded_driver())
        checks += await _model_checks(manifest, environ, devices)
    return tuple(checks)


def device_checks(manifest: Manifest, devices: DevicesAnswer, driver: str) -> list[DoctorCheck]:
    """Whether the GPUs of this machine, and the servers of the pools, can be used. `driver` says what of a
    GPU there is to see without an engine; empty for nothing. A server in use is well, and worth knowing."""
    listed = any(device.kind == "gpu" for device in devices.devices)
    checks = [_check("gpu", gpu_not_listed(driver, devices.reasons) if driver and not listed else None)]
    for server in servers_of(manifest.pools.values()):
        said = [reason for reason in devices.reasons if reason.evidence.get("endpoint") == server]
        well = all(reason.code == "rpc_busy" for reason in said)
        checks.append(DoctorCheck(f"server rpc://{server}", well, said[0] if said else None))
    return checks


def _check(name: str, fault: Reason | None) -> DoctorCheck:
    return DoctorCheck(name, fault is None or fault.severity == "info", fault)


def _state_dir(directory: Path) -> Reason:
    """Where others have to look for what a running server left."""
    return Reason(
        "state_directory",
        f"{directory} holds the logs of models, events, the request log and what was measured and, while"
        " `paddock up` runs, its token, another one at each start.",
        evidence={"path": str(directory)},
    )


def _kept_engines(pids: Sequence[int]) -> list[DoctorCheck]:
    """Engines that nobody looks after now, where there are any: they hold memory."""
    if not pids:
        return []
    reason = Reason(
        "engines_kept",
        f"Engines of an earlier `paddock up` still run: {', '.join(f'process {pid}' for pid in pids)}.",
        'The next `paddock up` takes them over with on_exit = "keep", and ends them with "stop".',
        evidence={"pids": list(pids)},
    )
    return [_check("kept engines", reason)]


def _certificate(loaded: Loaded) -> list[DoctorCheck]:
    """Whether the certificate that the manifest names holds, and for how long."""
    tls = loaded.manifest.server.tls if loaded.manifest is not None else None
    if tls is None:
        return []
    try:
        end = ends_at(tls.certificate.read_text("ascii", "replace"))
    except OSError:
        end = None
    return [_check("certificate", certificate_reason(tls.certificate, end, utc_now()))]


def _manifest_fault(loaded: Loaded) -> Reason | None:
    errors = [problem for problem in loaded.problems if problem.severity == "error"]
    if not errors:
        return None
    more = f" More errors: {len(errors) - 1}." if len(errors) > 1 else ""
    return Reason(
        "manifest_invalid",
        f"{errors[0].sentence}.{more}",
        "Correct the file; `paddock check` shows every problem with its place.",
        "error",
    )


def _manifest_warnings(loaded: Loaded) -> Reason | None:
    """No fault: the manifest is in force. What it warns of is worth knowing."""
    warnings = loaded.problems
    if not warnings:
        return None
    more = f" More warnings: {len(warnings) - 1}." if len(warnings) > 1 else ""
    return Reason(
        "manifest_warnings",
        f"{warnings[0].sentence}.{more}",
        "`paddock check` shows every problem with its place.",
        evidence={"codes": [problem.code for problem in warnings]},
    )


def _disk_fault(directory: Path) -> Reason | None:
    """Too little room where logs and saved prompt caches go. A directory may not be there yet."""
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free >= LEAST_DISK_BYTES:
        return None
    return Reason(
        "disk_nearly_full",
        f"Only {free / GIB:.2f} GiB are free at {existing}, where logs and saved prompt caches go.",
        "Free some space, or set PADDOCK_STATE_DIR to a directory on another disk.",
        "warning",
        {"free_bytes": free},
    )


async def _engine_checks(
    manifest: Manifest, environ: Mapping[str, str], probes: CapabilityCache
) -> list[DoctorCheck]:
    """For each engine: found, then started and understood."""
    checks = []
    for answer in await list_engines(manifest, environ, probes):
        reason = answer.reasons[0] if answer.reasons else None
        found = answer.binary is not None
        checks.append(DoctorCheck(f"engine {answer.ref.name}: found", found, None if found else reason))
        if found:
            checks.append(DoctorCheck(f"engine {answer.ref.name}: runs", reason is None, reason))
    return checks


async def _model_checks(
    manifest: Manifest, environ: Mapping[str, str], devices: DevicesAnswer
) -> list[DoctorCheck]:
    """For each model: its files are whole; then whether the largest can fit at all."""
    requests = manifest.models.values()
    looks = await asyncio.gather(*(asyncio.to_thread(_look, request, environ) for request in requests))
    checks = [
        _check(f"model {request.id}", look if isinstance(look, Reason) else None)
        for request, look in zip(requests, looks, strict=True)
    ]
    sizes = {request.id: look for request, look in zip(requests, looks, strict=True) if isinstance(look, int)}
    named = [one for one in requests if one.id in sizes and one.spec.drafter and takes_drafter(one)]
    faults = await asyncio.gather(*(asyncio.to_thread(_drafter_fault, one, environ) for one in named))
    checks += [_check(f"model {one.id}: drafter", fault) for one, fault in zip(named, faults, strict=True)]
    if sizes:
        cards = (device for device in devices.devices if not device.same_as and not device.is_unified)
        checks.append(_check("memory", _memory_fault(sizes, sum(device.total_bytes for device in cards))))
    return checks


def _look(request: ModelRequest, environ: Mapping[str, str]) -> int | Reason:
    """The bytes of a model's files, or why they cannot be served, now or at all. Blocking."""
    local = HubSources(environ).find_local(request.source)
    if local is None:
        return _not_downloaded(request, hub_mode(environ))
    try:
        return check_model_file(local.main).total_bytes
    except Refused as refusal:
        return refusal.failure.reason


def _drafter_fault(request: ModelRequest, environ: Mapping[str, str]) -> Reason | None:
    """Why the drafter that the policy names is not used, as the next start would find it. Blocking."""
    reader = FactsReader()
    try:
        source = local_files(HubSources(environ), request)
        found = find_drafter(request.spec, source, reader.read(source.main), reader)
    except Refused as refusal:
        return refusal.failure.reason
    return min(found.reasons, key=lambda reason: reason.severity == "info", default=None)


def _not_downloaded(request: ModelRequest, mode: HubMode) -> Reason:
    """No fault where the first start can fetch it."""
    text = f"{source_text(request.source)} is not downloaded"
    evidence = {"source": source_text(request.source), "offline": mode.offline}
    pull = f"`paddock pull {request.id}` fetches it"
    if mode.offline:
        message = f"{text}, and this machine cannot reach the hub ({mode.detail})."
        return Reason("not_downloaded", message, f"Get online, then {pull}.", "warning", evidence)
    return Reason(
        "not_downloaded",
        f"{text} yet.",
        f"{pull}; so does its first start, which then takes as long as the download.",
        evidence=evidence,
    )


def _memory_fault(sizes: Mapping[str, int], total: int) -> Reason | None:
    """A model that is larger than all memory together, which no placement can help."""
    largest = max(sizes, key=lambda model_id: sizes[model_id])
    if total == 0 or sizes[largest] <= total:
        return None
    return Reason(
        "model_exceeds_memory",
        f"{largest} has {sizes[largest] / GIB:.1f} GiB, all memory together {total / GIB:.1f} GiB.",
        "Choose a smaller quantisation of the model, or a machine with more memory.",
        "warning",
        {"model": largest, "file_bytes": sizes[largest], "memory_bytes": total},
    )
