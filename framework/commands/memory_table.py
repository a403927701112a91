"""The memory of a launch as a table: device, what for, size, how it is known. For `plan` and `inspect`."""

from __future__ import annotations

from typing import Any

from framework.commands.output import print_table, say
from framework.values.units_text import size as size_text

COLUMNS = ("  MEMORY", "FOR", "SIZE", "BASIS")
# Why a number does not count from the start.
MAPPED = "mapped file"
GROWS = "grows to it"


def print_memory(memory: dict[str, Any]) -> None:
    """Lines of each device and their sum, with what the sum is compared with; nothing without lines."""
    rows: list[tuple[str | None, ...]] = []
    for device, total in memory["total_bytes"].items():
        lines = [line for line in memory["lines"] if line["device"] == device]
        rows += [
            (f"  {device}" if first else "", _words(line["label"]), size_text(line["bytes"]), _basis(line))
            for first, line in zip([True] + [False] * len(lines), lines, strict=False)
        ]
        rows.append(("", "total", size_text(total), _room(memory, device)))
    if rows:
        print_table(COLUMNS, rows)


def print_verdict(fit: dict[str, Any]) -> None:
    """Whether it fits, and what would help, best first."""
    if fit["fits"] is None:
        return
    if fit["fits"]:
        say("  fits" + (", with a part in host memory; what changes that:" if fit["remedies"] else ""))
    else:
        say("  does not fit" + ("; what helps:" if fit["remedies"] else ""), "yellow")
    for remedy in fit["remedies"]:
        mark = "enough" if remedy["fits"] else "not enough alone"
        say(f"  → {remedy['sentence']} ({mark})")


def _basis(line: dict[str, Any]) -> str:
    notes = [line["basis"], *([MAPPED] if line["mapped"] else []), *([GROWS] if line["grows"] else [])]
    return ", ".join(notes)


def _room(memory: dict[str, Any], device: str) -> str | None:
    """What is needed from the start, of what may be used."""
    if device not in memory["budget_bytes"]:
        return None
    needed, budget = memory["needed_bytes"][device], memory["budget_bytes"][device]
    return f"needs {size_text(needed)} of {size_text(budget)}"


def _words(label: str) -> str:
    return label.replace("_", " ")
