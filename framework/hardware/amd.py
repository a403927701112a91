"""AMD cards as their driver shows them in files (04 §4.8), and memory that spilled to the host (GP-11).

Nodes of the driver's topology with a graphics unit are the ROCm devices, in their order; its processors are
nodes too and are never listed. Blocking; never raises: what cannot be read is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from framework.values.reason import Reason

TOPOLOGY = Path("sys/class/kfd/kfd/topology/nodes")
RENDER_NODES = Path("sys/class/drm")
MIB = 2**20
# A driver out of card memory puts what comes next into host memory, at a fraction of the speed.
FULL_SHARE = 0.95
LEAST_SPILL_BYTES = 1024 * MIB
# Longer files are not what they should be.
FILE_LIMIT_BYTES = 2**16


@dataclass(frozen=True)
class AmdCard:
    """One card. `host_used_bytes` is host memory that it uses (GTT)."""

    ordinal: int
    """As ROCm counts all cards."""
    architecture: str
    total_bytes: int
    used_bytes: int
    host_used_bytes: int = 0
    bus_id: str = ""
    utilisation: float | None = None


def read_amd_cards(root: Path = Path("/")) -> tuple[AmdCard, ...]:
    """All cards in the order in which ROCm counts them. `root` stands for the file system."""
    return tuple(_cards(root))


class SpillWatch:
    """Sees when a card that is full goes on in host memory. Keeps the least that each used there."""

    def __init__(self) -> None:
        self._least: dict[int, int] = {}

    def look(self, cards: tuple[AmdCard, ...]) -> tuple[Reason, ...]:
        """What has spilled in this sample."""
        return tuple(reason for card in cards if (reason := self._spill(card)))

    def _spill(self, card: AmdCard) -> Reason | None:
        before = min(self._least.get(card.ordinal, card.host_used_bytes), card.host_used_bytes)
        self._least[card.ordinal] = before
        grown = card.host_used_bytes - before
        if card.used_bytes < FULL_SHARE * card.total_bytes or grown < LEAST_SPILL_BYTES:
            return None
        return Reason(
            "device_memory_spill",
            f"ROCm{card.ordinal} is full ({card.used_bytes // MIB} of {card.total_bytes // MIB} MiB), and its"
            f" driver has put {grown // MIB} MiB more into host memory, which is many times slower.",
            "Ask for a shorter context or a smaller variant, or lower `fill` or `budget` of its pool.",
            "warning",
            {
                "device": f"ROCm{card.ordinal}",
                "used_bytes": card.used_bytes,
                "total_bytes": card.total_bytes,
                "host_used_bytes": card.host_used_bytes,
                "host_used_before_bytes": before,
            },
        )


def _cards(root: Path) -> Iterator[AmdCard]:
    try:
        nodes = [path for path in (root / TOPOLOGY).iterdir() if path.name.isdigit()]
    except OSError:
        return
    every = (_properties(node / "properties") for node in sorted(nodes, key=lambda path: int(path.name)))
    graphics = (properties for properties in every if properties.get("simd_count", 0) > 0)
    for ordinal, properties in enumerate(graphics):
        card = _card(root, ordinal, properties)
        if card is not None:
            yield card


def _card(root: Path, ordinal: int, properties: Mapping[str, int]) -> AmdCard | None:
    device = root / RENDER_NODES / f"renderD{properties.get('drm_render_minor', -1)}" / "device"
    total, used = _number(device / "mem_info_vram_total"), _number(device / "mem_info_vram_used")
    if total is None or used is None:
        return None
    busy = _number(device / "gpu_busy_percent")
    return AmdCard(
        ordinal,
        _architecture(properties.get("gfx_target_version", 0)),
        total,
        min(used, total),
        _number(device / "mem_info_gtt_used") or 0,
        _bus_id(properties),
        None if busy is None else min(1.0, busy / 100),
    )


def _architecture(version: int) -> str:
    """110501 is gfx1151: two digits each, the last two of which are written as one hexadecimal digit."""
    if version <= 0:
        return ""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def _bus_id(properties: Mapping[str, int]) -> str:
    place = properties.get("location_id")
    if place is None:
        return ""
    return f"{properties.get('domain', 0):04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"


def _properties(path: Path) -> dict[str, int]:
    lines = (line.split() for line in _text(path).splitlines())
    return {
        parts[0]: int(parts[1])
        for parts in lines
        if len(parts) == 2 and parts[1].isascii() and parts[1].isdecimal()
    }


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(FILE_LIMIT_BYTES).decode("ascii", "replace")
    except OSError:
        return ""
