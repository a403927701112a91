"""Pools against each other and against the models in them (01 §2.3), as far as a manifest alone can tell.

Called by `load.py`. What needs the devices themselves, such as whether a model fits, is found by its plan. An
error is what can never work; a warning is what works and surprises.
"""

from __future__ import annotations

from collections.abc import Mapping

from framework.manifest.addresses import is_remote, is_uuid
from framework.manifest.files import Files
from framework.manifest.findings import Findings, Place
from framework.manifest.key_paths import quoted_key
from framework.manifest.schema_engines import PoolTable
from framework.manifest.schema_model import DefaultsTable, ModelTable
from framework.manifest.tables import Entry, Tables
from framework.values.device_words import AUTO, CPU
from framework.values.units_text import counted, size

DEFAULT_POOL = "default"
LOCALHOST, LOOPBACK = "rpc://localhost:", "rpc://127.0.0.1:"
# Stands for every GPU of this machine; no device is called so.
ANY_GPU = "*"
NOBODY: tuple[int, Place | None] = (0, None)


def check_pools(tables: Tables, models: Mapping[str, ModelTable], files: Files, findings: Findings) -> None:
    """Note what does not go together; `models` have what they inherit."""
    _check_overlaps(tables, findings)
    pools = {name: _pool(model, tables) for name, model in models.items()}
    for entry in tables.pools.values():
        _check_cpu_alone(entry, findings)
        _check_room(entry, findings)
        pinned = {name: model for name, model in models.items() if model.pin and pools[name] is entry}
        _check_pins(entry, pinned, files, findings)
    for asking in tables.asking():
        _check_auto_alone(asking, findings)
    for name, model in models.items():
        if model.placement.devices:
            _check_pick(tables.models[name], model, tables, findings)


def _pool(model: ModelTable, tables: Tables) -> Entry[PoolTable] | None:
    """The pool of a model where it is written; None for the implied one, and for an unknown name."""
    only = next(iter(tables.pools)) if len(tables.pools) == 1 else None
    name = model.pool or only
    return None if name is None else tables.pools.get(name)


def _check_overlaps(tables: Tables, findings: Findings) -> None:
    """A device of two pools counts for both, yet only models of the same pool make room for each other."""
    owners: dict[str, tuple[int, Place]] = {}
    for entry in tables.pools.values():
        for device in _devices(entry):
            place = _place(entry, device)
            _, first = min((owners[one] for one in _meets(device) if one in owners), default=NOBODY)
            if first is not None and first.path[1] != entry.name:
                message = f'{place.name}: "{device}" is in pool {quoted_key(str(first.path[1]))} too'
                message += f" ({first.location}): models of different pools never make room for each other"
                findings.add(
                    "device_shared",
                    place,
                    f"{message}; put what shares a device into one pool",
                    found=f'"{device}"',
                    severity="warning",
                )
            for one in _means(device):
                owners.setdefault(one, (len(owners), place))


def _devices(entry: Entry[PoolTable]) -> tuple[str, ...]:
    """Devices of a pool, each once; none where they are written wrongly."""
    return () if "devices" in entry.bad_keys else tuple(dict.fromkeys(entry.table.devices))


def _place(entry: Entry[PoolTable], device: str) -> Place:
    written = "devices" in entry.raw
    return entry.place.child("devices", entry.table.devices.index(device)) if written else entry.place.key


def _means(device: str) -> tuple[str, ...]:
    """An entry as others may have it too; `auto` has every GPU of this machine, and each is one of them."""
    if device == CPU or is_remote(device):
        return (device.replace(LOCALHOST, LOOPBACK),)
    return (device, ANY_GPU)


def _meets(device: str) -> tuple[str, ...]:
    """What must have an owner for an entry to be shared."""
    if device == AUTO:
        return (ANY_GPU,)
    return (_means(device)[0], *((AUTO,) if ANY_GPU in _means(device) else ()))


def _check_room(entry: Entry[PoolTable], findings: Findings) -> None:
    pool = entry.table
    if pool.budget is None or pool.budget > pool.reserve or {"budget", "reserve"} & entry.bad_keys:
        return
    place = entry.place.child("budget")
    message = f"{place.name}: {size(pool.reserve)} of it stay free, so that nothing is left for models"
    findings.add("no_room", place, message, found=size(pool.budget), allowed="more than reserve")


def _check_pins(
    entry: Entry[PoolTable], pinned: Mapping[str, ModelTable], files: Files, findings: Findings
) -> None:
    """Pinned models stay, so all of them have to be in the pool at once."""
    devices = _devices(entry)
    if not pinned or not devices:
        return
    copies = sum(model.replicas for model in pinned.values())
    names = ", ".join(quoted_key(name) for name in pinned)
    if all(map(is_remote, devices)) and copies > len(devices):
        place = entry.place.child("devices")
        message = f"{place.name}: {copies} copies of pinned models ({names}) are to stay on"
        message += f" {counted(len(devices), 'RPC server')}, and each serves one process at a time"
        findings.add("pins_exceed_pool", place, message, found=str(copies), allowed=str(len(devices)))
    if entry.table.budget is None or AUTO in devices or {"budget", "reserve"} & entry.bad_keys:
        return
    room = (entry.table.budget - entry.table.reserve) * len(devices)
    needed = sum(model.replicas * files.size_bytes(model.source.path) for model in pinned.values())
    if needed > room > 0:
        place = entry.place.child("budget")
        message = f"{place.name}: the files of pinned models ({names}) alone have {size(needed)},"
        message += f" and {size(room)} of the pool can be planned"
        findings.add(
            "pins_exceed_pool",
            place,
            message,
            found=size(needed),
            allowed=size(room),
            severity="error" if _holds_all(entry.table, devices) else "warning",
        )


def _holds_all(pool: PoolTable, devices: tuple[str, ...]) -> bool:
    """Whether no part of a model can lie elsewhere. A remote server may have more than one device."""
    alone = pool.offload == "forbid" or set(devices) == {CPU}
    return alone and not any(map(is_remote, devices))


def _check_cpu_alone(entry: Entry[PoolTable], findings: Findings) -> None:
    devices = _devices(entry)
    if CPU in devices and len(devices) > 1:
        place = _place(entry, CPU)
        message = f'{place.name}: a pool of "{CPU}" uses no GPU, so no other device can stand beside it'
        message += "; models of other pools use host memory by themselves"
        findings.add("bad_device", place, message, found=f'"{CPU}"')


def _check_auto_alone(entry: Entry[DefaultsTable], findings: Findings) -> None:
    devices = entry.table.placement.devices
    if AUTO in devices and len(devices) > 1:
        place = entry.place.child("placement", "devices")
        message = f'{place.name}: "{AUTO}" means every device of the pool, so no other can stand beside it'
        findings.add("bad_device", place, message, allowed=f'devices of the pool, or ["{AUTO}"]')


def _check_pick(own: Entry[ModelTable], model: ModelTable, tables: Tables, findings: Findings) -> None:
    """A pick lies inside the pool; of a UUID and a name nobody can tell here whether they mean one card."""
    pool = _pool(model, tables)
    devices = (AUTO,) if pool is None else _devices(pool)
    if not devices or (pool is None and tables.pools):
        return  # noted already
    local = any(device not in (AUTO, CPU) and not is_remote(device) for device in devices)
    for index, device in enumerate(model.placement.devices):
        unclear = not is_remote(device) and (
            AUTO in devices
            or (device != CPU and is_uuid(device) and local)
            or (device != CPU and any(map(is_uuid, devices)))
        )
        if device == AUTO or device in devices or unclear:
            continue
        place = _pick_place(own, tables, index)
        name = DEFAULT_POOL if pool is None else pool.name
        listed = ", ".join(f'"{one}"' for one in devices)
        message = f'{place.name}: "{device}" is not in pool {quoted_key(name)}, which has {listed}'
        findings.add("device_not_in_pool", place, message, found=f'"{device}"', allowed=listed)


def _pick_place(own: Entry[ModelTable], tables: Tables, index: int) -> Place:
    """Where the pick is written: at the model, else in what it inherits."""
    written = own.raw.get("placement")
    inherits = not isinstance(written, dict) or "devices" not in written
    entry = tables.defaults if inherits and tables.defaults is not None else own
    return entry.place.child("placement", "devices", index)
