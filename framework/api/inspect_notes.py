"""Settings of an inspection, and what is odd about them: refused as in a manifest, or told.

Pure. Called by inspection, and by the readers of settings: the command and the query of an address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from framework.engines.granted import UNQUANTISED
from framework.planning.memory_reasons import context_above_training
from framework.values.device import HOST_NAME, Device
from framework.values.reason import Reason
from framework.values.units_text import counted


@dataclass(frozen=True)
class InspectSettings:
    """The launch that memory is worked out for. None leaves a setting to the engine's default."""

    context: int | None = None
    """Tokens of all slots together; the trained context by default."""
    slots: int = 1
    cache_types: tuple[str, str] = ("f16", "f16")
    """K and V."""
    ubatch: int | None = None
    """Tokens."""
    unified: bool | None = None
    flash_attn: bool = True
    swa_full: bool = False
    gpu_layers: int | None = None
    device: str | None = None


def value_cache_fault(settings: InspectSettings) -> str | None:
    """Why no engine starts with this cache: `paddock check` refuses it of a manifest too (15 §7)."""
    value = settings.cache_types[1]
    if settings.flash_attn or value in UNQUANTISED:
        return None
    allowed = ", ".join(sorted(UNQUANTISED))
    return f"the value cache {value} needs flash attention, which is off; allowed without it is {allowed}"


def setting_notes(
    settings: InspectSettings, context_train: int | None, devices: Sequence[Device]
) -> tuple[Reason, ...]:
    """Settings that a launch would take otherwise than they read. `devices` are those of this machine."""
    found = []
    if context_train and settings.context and settings.context > context_train:
        found.append(context_above_training(settings.context, context_train))
    is_on_host = settings.device in (None, HOST_NAME)
    if is_on_host and settings.gpu_layers:
        found.append(_offload_without_gpu(settings.gpu_layers))
    if not is_on_host and devices and settings.device not in {device.name for device in devices}:
        found.append(_no_such_device(str(settings.device), devices))
    return tuple(found)


def _offload_without_gpu(layers: int) -> Reason:
    return Reason(
        "offload_without_gpu",
        f"{counted(layers, 'layer')} on a GPU, and no GPU to put them on: everything is in host memory.",
        "Name a device as well; `paddock devices` lists them.",
        "warning",
        {"gpu_layers": layers},
    )


def _no_such_device(name: str, devices: Sequence[Device]) -> Reason:
    known = ", ".join(device.name for device in devices)
    return Reason(
        "no_such_device",
        f"There is no device {name!r} here, so nobody can say whether it fits; there is {known}.",
        "Name one of them, as `paddock devices` lists them.",
        "warning",
        {"device": name, "devices": [device.name for device in devices]},
    )
