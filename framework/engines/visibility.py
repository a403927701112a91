"""Which GPUs a process is shown, and what it calls them (04 §3, §8). Pure: environment in, environment out.

Called by planning for the environment of an engine, and by hardware to know which cards a mask leaves. CUDA
and ROCm engines count what their mask lets them see, in bus order; Vulkan devices are never masked, as that
variable counts otherwise than the engine does; remote ones are counted over the servers on the command line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from framework.values.device import Device

Masked = Literal["cuda", "rocm"]
CUDA_MASK, HIP_MASK, ROCR_MASK = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"
ORDER_VARIABLE, BUS_ORDER = "CUDA_DEVICE_ORDER", "PCI_BUS_ID"
NOTHING = "-1"
SLICE = "MIG-"
"""How the UUID of a slice of a card begins."""
MASKED_NAME = re.compile(r"(?P<kind>CUDA|ROCm)(?P<ordinal>\d{1,4})")
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")


@dataclass(frozen=True)
class Mask:
    """What a mask lets a process see: everything (`none`), numbers in its order, cards by text (`opaque`)."""

    kind: Literal["none", "ids", "opaque"] = "none"
    ids: tuple[int, ...] = ()
    tokens: tuple[str, ...] = ()

    def physical(self, ordinal: int) -> int:
        """The card that a process calls `ordinal`, as far as the mask tells."""
        return self.ids[ordinal] if 0 <= ordinal < len(self.ids) else ordinal


@dataclass(frozen=True)
class Shown:
    """What an engine is shown: its environment, its servers, and its names of the chosen devices."""

    env: Mapping[str, str]
    child_names: Mapping[str, str] = field(default_factory=dict)
    """By the names everybody else uses."""
    servers: tuple[str, ...] = ()
    """`host:port` of what goes behind `--rpc`: the servers in use and no other, since it connects to all."""


def parse_mask(text: str | None) -> Mask:
    """A mask as the runtimes read it: everything from an invalid index on is ignored (04 §3.1)."""
    if text is None:
        return Mask()
    tokens = tuple(item for part in text.split(",") if (item := part.strip()))
    if not all(map(WHOLE_NUMBER.fullmatch, tokens)):
        return Mask("opaque", tokens=tokens)
    numbers = [int(token) for token in tokens]
    end = next((place for place, number in enumerate(numbers) if number < 0), len(numbers))
    return Mask("ids", tuple(numbers[:end]))


def mask_variable(environ: Mapping[str, str], backend: Masked) -> str:
    """The variable whose mask counts (04 §3.2): for ROCm the first that is set, even if it is empty."""
    if backend == "cuda":
        return CUDA_MASK
    candidates = (HIP_MASK, ROCR_MASK, CUDA_MASK)
    return next((name for name in candidates if name in environ), CUDA_MASK)


def inherited_mask(environ: Mapping[str, str], backend: Masked) -> Mask:
    """What the environment lets such an engine see."""
    return parse_mask(environ.get(mask_variable(environ, backend)))


def write_mask(
    environ: Mapping[str, str],
    ids: Sequence[int],
    backend: Masked,
    *,
    prefer_rocr: bool = False,
) -> dict[str, str]:
    """`environ` with only these cards visible; none of them hides all (04 §3.3).

    `ids` are physical ones, or places in the list of an inherited mask that names cards by text.
    """
    inherited = inherited_mask(environ, backend)
    texts = [str(number) for number in ids]
    if inherited.kind == "opaque":
        texts = [inherited.tokens[place] for place in ids if 0 <= place < len(inherited.tokens)]
    return _write(environ, texts, backend, prefer_rocr=prefer_rocr)


def keep_order(
    environ: Mapping[str, str], backend: Masked, seen: Sequence[int] | None = None
) -> dict[str, str]:
    """`environ` in which cards come in the order that the user was shown, for shares by hand (04 §3.4).

    `seen` is that order by physical ids, None where the list was not by such. The set never changes.
    """
    env = {**environ, ORDER_VARIABLE: BUS_ORDER}
    inherited = inherited_mask(environ, backend)
    if not inherited.ids:
        return env
    same = seen is not None and set(seen) == set(inherited.ids)
    order = tuple(seen) if seen is not None and same else tuple(sorted(inherited.ids))
    prefer_rocr = HIP_MASK not in environ and ROCR_MASK in environ
    return write_mask(env, order, backend, prefer_rocr=prefer_rocr)


def show_only(environ: Mapping[str, str], chosen: Sequence[Device], listed: Sequence[Device]) -> Shown:
    """An environment in which an engine sees `chosen` of `listed` devices, and what it calls them (04 §8).

    All cards of a runtime stay in the order in which they were listed, some come in bus order. Where none was
    chosen they are hidden, since a visible one that is not used still costs some hundred MiB. A slice of a
    card (MIG) is shown by its UUID. What no mask can hide, which is Vulkan devices, has to be left out by
    `--device`.
    """
    env = dict(environ)
    names = {device.name: device.name for device in chosen}
    for backend in _masked_backends(listed):
        inherited = inherited_mask(environ, backend)
        mine = _in_bus_order(chosen, backend, inherited)
        every = [device for device in listed if masked_backend(device.name) == backend]
        if len(mine) == len(every) and not any(is_slice(device.uuid) for device in every):
            # Nothing to hide: cards stay as they were listed, and keep their names.
            env = keep_order(env, backend, [inherited.physical(place_of(one.name)) for one in every])
            continue
        env = _show_cards(env, mine, backend)
        prefix = "CUDA" if backend == "cuda" else "ROCm"
        names |= {device.name: f"{prefix}{place}" for place, device in enumerate(mine)}
    used = {device.endpoint for device in chosen if device.endpoint}
    servers = tuple(
        dict.fromkeys(device.endpoint for device in _by_number(listed) if device.endpoint in used)
    )
    numbers = remote_names(servers, listed)
    names |= {name: numbers[name] for name in names if name in numbers}
    return Shown(env, names, servers)


def remote_names(servers: Sequence[str], listed: Sequence[Device]) -> dict[str, str]:
    """What an engine that is given these servers calls their devices, by the names everybody else uses: it
    counts server by server, while the names of one server's devices need not follow each other."""
    counted = [device for server in servers for device in _by_number(listed) if device.endpoint == server]
    return {device.name: f"RPC{place}" for place, device in enumerate(counted)}


def masked_backend(name: str) -> Masked | None:
    """The runtime that masks a device of this name; None where none does."""
    if is_slice(name):
        return "cuda"
    match = MASKED_NAME.fullmatch(name)
    return None if match is None else ("cuda" if match["kind"] == "CUDA" else "rocm")


def is_slice(name: str) -> bool:
    """Whether a device, by its name or UUID, is a slice of a card. A process can use only one (GP-06)."""
    return name.startswith(SLICE)


def place_of(name: str) -> int:
    """The number at the end of a device's name; -1 without one."""
    digits = re.search(r"(\d{1,9})\Z", name)
    return int(digits[1]) if digits else -1


def _in_bus_order(chosen: Sequence[Device], backend: Masked, inherited: Mask) -> list[Device]:
    """The chosen cards of a runtime, by physical id, as their mask will have them."""
    mine = (device for device in chosen if masked_backend(device.name) == backend)
    return sorted(mine, key=lambda device: inherited.physical(place_of(device.name)))


def _show_cards(environ: Mapping[str, str], cards: Sequence[Device], backend: Masked) -> dict[str, str]:
    env = {**environ, ORDER_VARIABLE: BUS_ORDER}
    if any(is_slice(device.uuid) for device in cards):
        return _write(env, [device.uuid for device in cards], backend, prefer_rocr=False)
    inherited = inherited_mask(environ, backend)
    ids = [inherited.physical(place_of(device.name)) for device in cards]
    return write_mask(env, ids, backend, prefer_rocr=True)


def _write(
    environ: Mapping[str, str], texts: Sequence[str], backend: Masked, *, prefer_rocr: bool
) -> dict[str, str]:
    listed = ",".join(texts) if texts else NOTHING
    env = {**environ, CUDA_MASK: listed}
    if backend == "cuda":
        return env
    if prefer_rocr and texts:
        # A HIP mask acts too late: by then the runtime has walked every card, and dies of one that the build
        # does not support. Behind this one cards are counted from 0 again, and HIP reads the CUDA variable.
        env |= {ROCR_MASK: listed, CUDA_MASK: ",".join(map(str, range(len(texts))))}
        env.pop(HIP_MASK, None)
        return env
    env[HIP_MASK] = listed
    env.pop(ROCR_MASK, None)
    return env


def _masked_backends(listed: Sequence[Device]) -> tuple[Masked, ...]:
    return tuple(dict.fromkeys(kind for device in listed if (kind := masked_backend(device.name))))


def _by_number(listed: Sequence[Device]) -> list[Device]:
    remote = [device for device in listed if device.endpoint]
    return sorted(remote, key=lambda device: place_of(device.name))
