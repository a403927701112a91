"""What a server grows in host memory besides weights: prompt cache and context checkpoints. Pure.

The engine's own plan knows neither; both are filled while it runs, up to a limit, so their lines are
`assumed`.
"""

from __future__ import annotations

from framework.planning.memory.kv_cache import row_elements
from framework.planning.memory.placement import HOST
from framework.planning.memory.recurrent_state import state_bytes
from framework.planning.memory.settings import CacheSettings, HostSettings, bytes_per_element
from framework.planning.memory.shape import ModelShape
from framework.values.plan import MemoryLine


def host_lines(shape: ModelShape, settings: CacheSettings, host: HostSettings) -> list[MemoryLine]:
    """The limits of both, where they are not 0."""
    found = {
        "checkpoints": checkpoint_bytes(shape, settings, host.checkpoints),
        "prompt_cache": host.cache_ram_bytes if shape.cache_layers or shape.recurrent_layers else 0,
    }
    return [MemoryLine(HOST, label, size, "assumed", grows=True) for label, size in found.items() if size]


def checkpoint_bytes(shape: ModelShape, settings: CacheSettings, checkpoints: int) -> int:
    """Checkpoints of all slots. Only models that cannot rewind make them: each holds the windowed layers of
    one window (03 §5.4), and the states of one sequence."""
    window = 0 if settings.swa_full else shape.sliding_window or 0
    key_bytes, value_bytes = bytes_per_element(settings.key_type), bytes_per_element(settings.value_type)
    one = state_bytes(shape, 1)
    for layer in shape.cache_layers:
        if window and shape.is_windowed(layer):
            keys, values = row_elements(shape, layer, flash_attention=settings.flash_attention)
            one += int(window * (keys * key_bytes + values * value_bytes))
    return max(0, checkpoints) * max(1, settings.slots) * one
