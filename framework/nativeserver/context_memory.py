"""Whether memory can hold the cache of the context that was asked for, before it is made. Called by serving.

The library fills a cache as soon as it has it, so that one the system promised and does not have ends this
process, or another.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework.nativeserver.load_failed import CONTEXT, LoadFailed
from framework.values.units_text import size

log = logging.getLogger(__name__)

AUTO_SLOTS = 4
CPU_ALONE = ["none"]
TOKEN_STEP = 1024


@dataclass(frozen=True)
class Room:
    """Bytes that this machine has, and that are free, in all places where the cache may lie."""

    total_bytes: int
    free_bytes: int


def check_context(params: Any, module: Any) -> None:
    """Warns of a cache larger than what is free. Raises LoadFailed for one larger than all memory there is.

    `params` are the core's EngineParams. Reads the model's header and lists devices; silent where the size of
    the cache can't be known from the file.
    """
    needed_bytes = 0 if params.n_ctx <= 0 or params.metadata_overrides else cache_bytes(params)
    if needed_bytes <= unused_bytes():
        return
    room = _room(params, module)
    if needed_bytes <= room.free_bytes:
        return
    asks = f"the KV cache of --ctx-size {params.n_ctx} takes {size(needed_bytes)}"
    most = int(params.n_ctx * room.free_bytes / needed_bytes) // TOKEN_STEP * TOKEN_STEP
    remedy = f"make --ctx-size smaller: {most} would take all that is free, which is {size(room.free_bytes)}"
    if needed_bytes > room.total_bytes:
        raise LoadFailed(
            CONTEXT, f"{asks}, and this machine has {size(room.total_bytes)} of memory; {remedy}"
        )
    log.warning("%s, which is more than is free; %s", asks, remedy)


def cache_bytes(params: Any) -> int:
    """Bytes of keys and values for the context of `params`; 0 where the layers of the model are not known."""
    from framework.models.gguf_header import read_header
    from framework.models.swa_pattern import with_window
    from framework.planning.memory.architectures import MEASURED_ARCHITECTURES
    from framework.planning.memory.kv_cache import kv_bytes
    from framework.planning.memory.settings import CacheSettings
    from framework.planning.memory.shape import shape_of

    found = read_header(Path(params.model_path))
    if found.status != "ok" or found.header.architecture not in MEASURED_ARCHITECTURES:
        return 0
    is_auto = params.n_parallel < 0
    settings = CacheSettings(
        n_ctx=params.n_ctx,
        slots=AUTO_SLOTS if is_auto else params.n_parallel,
        key_type=params.cache_type_k,
        value_type=params.cache_type_v,
        unified=is_auto or params.kv_unified,
        swa_full=params.swa_full,
        ubatch=params.n_ubatch,
    )
    return kv_bytes(shape_of(with_window(found.header)), settings)


def unused_bytes() -> int:
    """Host memory that nobody uses, caches of the system counted as used; 0 where the system does not say.

    Enough for most starts, which then need no closer look.
    """
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


def _room(params: Any, module: Any) -> Room:
    import psutil

    host, swap = psutil.virtual_memory(), psutil.swap_memory()
    stays_in_host = params.devices == CPU_ALONE or params.n_gpu_layers == 0 or not params.offload_kqv
    devices = [] if stays_in_host else module.list_devices()
    return Room(
        host.total + swap.total + sum(device.total_bytes for device in devices),
        host.available + swap.free + sum(device.free_bytes for device in devices),
    )
