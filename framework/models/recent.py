"""What was read lately, as much of it as a bound in bytes allows. Safe to use from several threads.

One for a process: header_cache and facts share it, so that the bound holds for both together.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import fields
from sys import getsizeof
from typing import Any

from framework.models.gguf_fields import GgufHeader, OriginHints
from framework.models.gguf_tensors import TensorInfo

LIMIT_BYTES = 128 * 2**20
# A small object of Python; what a tensor has of them: its tuple and two numbers beyond the small ones.
OBJECT_BYTES = 32
TENSOR_BYTES = getsizeof(TensorInfo("", (), 0, 0, 0)) + 2 * OBJECT_BYTES
# Results, sets of files and the entry itself.
ENTRY_BYTES = 4096


class Recent:
    """Values by key; the ones used longest ago go first. What is larger than the whole bound is not kept."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._known: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any:
        """The value of a key, or None."""
        with self._lock:
            if key not in self._known:
                return None
            self._known.move_to_end(key)
            return self._known[key][0]

    def put(self, key: Hashable, value: Any, cost_bytes: int) -> None:
        """Keep a value, in place of an older one of the same key."""
        with self._lock:
            self._drop(key)
            if cost_bytes > self.limit_bytes:
                return
            self._known[key] = (value, cost_bytes)
            self.used_bytes += cost_bytes
            while self.used_bytes > self.limit_bytes:
                self._drop(next(iter(self._known)))

    def _drop(self, key: Hashable) -> None:
        _, cost_bytes = self._known.pop(key, (None, 0))
        self.used_bytes -= cost_bytes


def cost_bytes(header: GgufHeader, tensors: tuple[TensorInfo, ...]) -> int:
    """What a header and tensors take in memory: texts by their real size, which is not their length."""
    texts_and_lists = [getattr(header, field.name) for field in fields(GgufHeader)]
    texts_and_lists += [getattr(header.origin, field.name) for field in fields(OriginHints)]
    total = ENTRY_BYTES + getsizeof(tensors) + TENSOR_BYTES * len(tensors)
    for value in texts_and_lists:
        if isinstance(value, str | tuple):
            total += getsizeof(value) + (OBJECT_BYTES * len(value) if isinstance(value, tuple) else 0)
    names, dims = (tensor.name for tensor in tensors), [tensor.dims for tensor in tensors]
    total += sum(map(getsizeof, names)) + sum(map(getsizeof, dims)) + OBJECT_BYTES * sum(map(len, dims))
    return total
