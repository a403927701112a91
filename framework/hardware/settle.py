"""Whether memory that an ended process held is really back (04 §5, PL-13). Pure; admission asks in a loop.

Drivers free a dead process's memory late. Who plans on the first sample after its end plans too small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from framework.values.device import Device

# After the end of a process this long at most, a sample this often.
LONGEST_S, INTERVAL_S = 2.0, 0.25
MIB = 2**20
TOLERANCE_BYTES = 256 * MIB
TOLERANCE_SHARE = 0.02


def tolerance_bytes(old: int, new: int) -> int:
    """How much what is free may still move, in whole MiB."""
    return max(TOLERANCE_BYTES, int(TOLERANCE_SHARE * max(old, new) / MIB) * MIB)


def is_settled(old: Sequence[Device], new: Sequence[Device]) -> bool:
    """Whether nothing moves any more from one sample to the next. A device that was not there before is not
    settled; host memory moves all the time and does not count."""
    before = {device.name: device.free_bytes for device in old}
    return all(
        device.name in before
        and abs(device.free_bytes - before[device.name])
        < tolerance_bytes(before[device.name], device.free_bytes)
        for device in new
        if device.kind != "cpu"
    )


def expected_free(before: Sequence[Device], freed: Mapping[str, int]) -> dict[str, int]:
    """What should be free once `freed` bytes have come back, by device: of the last sample before the end."""
    return {
        device.name: min(device.total_bytes or device.free_bytes, device.free_bytes + freed[device.name])
        for device in before
        if device.name in freed and device.kind != "cpu"
    }


def settled(sample: Sequence[Device], expected: Mapping[str, int]) -> bool:
    """Whether all that was expected is there. A device that is not listed now will not come by waiting. One
    whose listed free never fell is met at once, since its total caps what is expected."""
    free = {device.name: device.free_bytes for device in sample}
    return all(
        free[name] >= wanted - tolerance_bytes(free[name], wanted)
        for name, wanted in expected.items()
        if name in free
    )


def missing_bytes(sample: Sequence[Device], expected: Mapping[str, int]) -> dict[str, int]:
    """What has not come back, by device, for whoever has waited long enough."""
    free = {device.name: device.free_bytes for device in sample}
    gaps = {name: wanted - free[name] for name, wanted in expected.items() if name in free}
    return {name: gap for name, gap in gaps.items() if gap > tolerance_bytes(free[name], expected[name])}
