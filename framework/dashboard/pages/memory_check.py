"""Planned, said by the engine, measured: only the comparison of the three finds mistakes (case MD-12). Pure.

The plan says what a launch takes of a device, the log of its start what buffers the engine allocated, the
system or the driver what its process holds. What is held beyond all buffers is the context of the driver and
the program itself; it has a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from framework.dashboard.pages.waterfall import LABELS
from framework.planning.memory_drift import tolerance_bytes
from framework.values.plan import FitPlan, LaunchResult, MemoryLine
from framework.values.reason import Reason
from framework.values.units_text import UNKNOWN, size

# The engine's log does not tell a drafter's buffers from the model's own.
TOGETHER = {
    "drafter_weights": "weights",
    "drafter_kv": "kv",
    "recurrent_state": "kv",
    "drafter_compute": "compute",
}
RUNTIME = "runtime"
MINUS = "\N{MINUS SIGN}"
WORDS = {**LABELS, "kv": "KV cache and states"}
UNACCOUNTED = "unaccounted: driver and program"


@dataclass(frozen=True)
class CheckRow:
    """One kind of memory in words. `alert`: the difference is too large to be let pass."""

    label: str
    planned: str
    reported: str
    measured: str
    difference: str
    alert: bool


@dataclass(frozen=True)
class DeviceCheck:
    """One device; the last rows are what is not accounted for, and everything together."""

    device: str
    rows: tuple[CheckRow, ...]
    total: CheckRow


@dataclass(frozen=True)
class MemoryCheckSection:
    """All devices of a process, and what is wrong with them. `absent` says why there are none."""

    id: str
    devices: tuple[DeviceCheck, ...]
    reasons: tuple[Reason, ...]
    absent: str


NOTHING_RUNS = "Nothing runs, so there is nothing to compare the plan with."
NOT_TOLD = "The log of its start does not tell what the engine allocated."


def memory_check_section(
    element: str, fit: FitPlan | None, result: LaunchResult | None, held: Mapping[str, int]
) -> MemoryCheckSection:
    """The comparison for a process that runs. `held` is what drivers say, by device."""
    if result is None or not result.buffers:
        return MemoryCheckSection(element, (), (), NOTHING_RUNS if result is None else NOT_TOLD)
    lines = fit.lines if fit is not None else ()
    devices = dict.fromkeys(line.device for line in (*lines, *result.buffers))
    measured = {**result.held_bytes, **held}
    checks = [_Check(name, lines, result.buffers, measured.get(name)) for name in devices]
    reasons = tuple(reason for one in checks for reason in one.reasons())
    return MemoryCheckSection(element, tuple(one.as_rows() for one in checks), reasons, "")


def is_too_far(difference: int, expected: int) -> bool:
    """Whether a number is too far from what was expected."""
    return abs(difference) > tolerance_bytes(expected)


class _Check:
    """The numbers of one device, without pages of files and what grows later: the system can drop the ones,
    and the others are not there at the start."""

    def __init__(
        self, device: str, plan: Iterable[MemoryLine], buffers: Iterable[MemoryLine], measured: int | None
    ) -> None:
        self.device = device
        self.measured = measured
        self.planned = _by_label(device, plan)
        self.reported = _by_label(device, buffers)
        self.runtime = self.planned.pop(RUNTIME, 0)
        self.told = sum(self.reported.values())

    @property
    def unaccounted(self) -> int | None:
        """What the process holds beyond its buffers; negative where buffers were not touched yet."""
        return None if self.measured is None else self.measured - self.told

    def as_rows(self) -> DeviceCheck:
        labels = dict.fromkeys((*self.planned, *self.reported))
        rows = [self._row(label) for label in labels]
        rows.append(self._unaccounted_row())
        planned = sum(self.planned.values()) + self.runtime
        there = self.told + self.runtime if self.measured is None else self.measured
        total = CheckRow(
            "everything together",
            size(planned),
            size(self.told),
            size(self.measured),
            _signed(there - planned),
            is_too_far(there - planned, planned),
        )
        return DeviceCheck(self.device, tuple(rows), total)

    def reasons(self) -> Iterable[Reason]:
        planned = sum(self.planned.values())
        if is_too_far(self.told - planned, planned):
            yield _off(
                f"The engine allocated {size(self.told)} on {self.device}, planned were {size(planned)}.",
                {"device": self.device, "planned_bytes": planned, "reported_bytes": self.told},
            )
        beyond = self.unaccounted
        if beyond is not None and is_too_far(beyond - self.runtime, self.told):
            where = "more" if beyond > 0 else "less"
            yield _off(
                f"The process holds {size(abs(beyond))} {where} on {self.device} than its buffers take.",
                {"device": self.device, "reported_bytes": self.told, "measured_bytes": self.measured},
            )

    def _row(self, label: str) -> CheckRow:
        planned, reported = self.planned.get(label), self.reported.get(label)
        difference = (reported or 0) - (planned or 0)
        return CheckRow(
            WORDS.get(label, label),
            size(planned),
            size(reported),
            UNKNOWN,
            _signed(difference),
            is_too_far(difference, planned or 0),
        )

    def _unaccounted_row(self) -> CheckRow:
        beyond = self.unaccounted
        difference = 0 if beyond is None else beyond - self.runtime
        return CheckRow(
            UNACCOUNTED,
            size(self.runtime),
            UNKNOWN,
            UNKNOWN if beyond is None else _signed(beyond, plus=""),
            UNKNOWN if beyond is None else _signed(difference),
            is_too_far(difference, self.told),
        )


def _by_label(device: str, lines: Iterable[MemoryLine]) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in lines:
        if line.device == device and line.is_needed:
            label = TOGETHER.get(line.label, line.label)
            found[label] = found.get(label, 0) + line.bytes
    return found


def _signed(count: int, *, plus: str = "+") -> str:
    if not count:
        return size(0)
    return f"{plus if count > 0 else MINUS}{size(abs(count))}"


def _off(message: str, evidence: Mapping[str, object]) -> Reason:
    return Reason(
        "memory_unaccounted",
        message,
        "Look at the table of the model's memory; leave so much more in `reserve` if it stays.",
        "warning",
        dict(evidence),
    )
