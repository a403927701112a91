"""Read from the log of a start what the engine really allocated, and where (15 §7). Pure.

At the verbosity that every line asks for, an engine prints each buffer with its size: weights, caches and
states, compute, output, adapters, the projector. Called by runtime.readback. Only lines in the engine's own
form count, and only of the real load: the fit step measures without allocating. Where a buffer cannot be put
down to one device, nothing is said rather than too little.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from framework.values.device import HOST_NAME
from framework.values.plan import MemoryLine

MIB = 2**20
# Time, level and tag may be missing; then the name of the function that prints.
LINE = re.compile(r"(?:\d[\d.]* [A-Z] (?:\w{1,8} +)?)?(?P<source>\w{1,80}): *(?P<text>.*)")
SIZE = r"(?P<mib>\d{1,9}(?:\.\d{1,3})?) MiB"
BUFFER = re.compile(
    r"(?P<buffer>[^\s=]{1,200}) +(?P<kind>model|KV|RS|output|compute|LoRA|control vector)"
    rf" buffer size *= *{SIZE}"
)
DEVICE = re.compile(r"using device (?P<name>\w{1,64}) \((?P<about>[^()]{1,200})\)")
REMOTE = re.compile(r"RPC(?P<place>\d{1,4})\[(?P<endpoint>.{1,200})\]")
NO_ALLOC = re.compile(r"no_alloc\s*= (?P<on>[01])")
CONTEXT = "constructing llama_context"
PROJECTOR = re.compile(r"CLIP using (?P<backend>\S{1,200}) backend")
PROJECTOR_SIZE = re.compile(rf"model size: +{SIZE}")
# Host memory by other names: pages, pinned for a GPU, or rearranged for the processor.
HOST_BUFFER = re.compile(r"CPU(?:_\w+)?|\w+_Host|BLAS|AMX|Host")
MAPPED = "CPU_Mapped"
# Apple's GPU maps the file and keeps it; the buffer counts as the device's.
OWN_BUFFER = re.compile(r"(?P<device>[A-Za-z]{2,16}\d{1,4})(?:_Mapped|_Private)?")
MOST_BUFFERS = 4096
# What a buffer is for, in the words of a plan (13 §2); what is not here is for computing.
LABELS = {
    "model": "weights",
    "KV": "kv",
    "RS": "recurrent_state",
    "output": "output",
    "LoRA": "adapter",
    "control vector": "adapter",
    "projector": "projector",
}


@dataclass(frozen=True)
class Buffers:
    """Bytes by device, as the engine calls it; host memory is `CPU`."""

    allocated: Mapping[str, int] = field(default_factory=dict)
    """Empty while the log does not tell of all of them."""
    mapped: Mapping[str, int] = field(default_factory=dict)
    """Pages of files that the system can drop and read again."""
    lines: tuple[MemoryLine, ...] = ()
    """Both by what they are for; empty while the log does not tell of all of them."""


def read_buffers(lines: Iterable[str]) -> Buffers:
    """What the lines of one start say, from the first to readiness."""
    log = _Log()
    for line in lines:
        log.feed(line)
    return log.buffers()


class _Log:
    def __init__(self) -> None:
        self._sizes: dict[tuple[str, str, int], int] = {}
        """By buffer, what it is for, and which of these: compute buffers are reserved anew when something
        changes, so that of each context, and of the projector, the last one counts."""
        self._numbers: dict[str, set[str]] = {}
        """Remote devices in use, by endpoint."""
        self._contexts = 0
        self._stored = 0
        self._measuring = False
        self._projector = ""

    def feed(self, line: str) -> None:
        match = LINE.match(line)
        if match is None:
            return
        source, text = match["source"], match["text"]
        if found := NO_ALLOC.match(text):
            self._measuring = found["on"] == "1"
        elif found := DEVICE.match(text):
            if found["name"].startswith("RPC"):
                self._numbers.setdefault(found["about"], set()).add(found["name"])
        elif found := PROJECTOR.match(text):
            self._projector = found["backend"]
        elif self._projector and (found := PROJECTOR_SIZE.match(text)):
            self._note(self._projector, "projector", 0, found["mib"])
        elif text.startswith(CONTEXT):
            self._contexts += 1
        elif found := BUFFER.fullmatch(text):
            self._take(source, found)

    def buffers(self) -> Buffers:
        allocated: Counter[str] = Counter()
        mapped: Counter[str] = Counter()
        by_use: Counter[tuple[str, str, bool]] = Counter()
        remote = self._remote_names()
        for (buffer, kind, _), size in self._sizes.items():
            label = LABELS.get(kind, "compute")
            if buffer == MAPPED:
                mapped[HOST_NAME] += size
                by_use[HOST_NAME, label, True] += size
                continue
            device = remote.get(buffer) or _local_device(buffer)
            if device is None:
                return Buffers(mapped=dict(mapped))
            allocated[device] += size
            by_use[device, label, False] += size
        lines = (MemoryLine(*use[:2], size, "measured", mapped=use[2]) for use, size in by_use.items())
        return Buffers(dict(allocated), dict(mapped), tuple(lines))

    def _take(self, source: str, found: re.Match[str]) -> None:
        if self._measuring:
            return
        if found["kind"] == "compute":
            self._note(found["buffer"], source, self._contexts, found["mib"])
        else:
            self._stored += 1
            self._note(found["buffer"], found["kind"], self._stored, found["mib"])

    def _note(self, buffer: str, kind: str, place: int, mib: str) -> None:
        size = round(float(mib) * MIB)
        if size and len(self._sizes) < MOST_BUFFERS:
            self._sizes[buffer, kind, place] = size

    def _remote_names(self) -> dict[str, str]:
        """Remote buffers are named by endpoint and the server's own count of its devices, which need not be
        the count that the engine's names go by. Both run in the same order."""
        buffers: dict[str, set[str]] = {}
        for buffer, *_ in self._sizes:
            if match := REMOTE.fullmatch(buffer):
                buffers.setdefault(match["endpoint"], set()).add(buffer)
        names: dict[str, str] = {}
        for endpoint, used in buffers.items():
            devices = self._numbers.get(endpoint, set())
            if len(devices) == len(used):
                names |= dict(zip(sorted(used, key=_number), sorted(devices, key=_number), strict=True))
        return names


def _local_device(buffer: str) -> str | None:
    if HOST_BUFFER.fullmatch(buffer):
        return HOST_NAME
    match = OWN_BUFFER.fullmatch(buffer)
    return match["device"] if match else None


def _number(name: str) -> int:
    """The first number of `RPC1[host:port]` or `RPC1`."""
    digits = re.search(r"\d{1,9}", name)
    return int(digits[0]) if digits else 0
