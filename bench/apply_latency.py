"""How long an edit of the manifest takes to reach the running server.

Run by `make bench`. Runs `paddock up` with scripted engines, so that no load time of a model is measured: the
time is from the rename of the edited file to the first answer of the API that shows it. 01 §2.6 lets the
watcher settle for 50 to 200 ms of it.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.support.fakes import ROOT, write_fake_engine
from tests.support.model_files import write_tiny_gguf
from tests.support.paddock import RunningPaddock, start_paddock

REPEATS = 7
TIMEOUT_S = 10.0
POLL_S = 0.002
TABLES = """
[engines.default]
binary = "{engine}"

[models.first]
source = "{model}"
aliases = ["alias-0"]
load = "at-start"

[models.second]
source = "{model}"
load = "at-start"
"""


def time_edit_ms(paddock: RunningPaddock, old: str, new: str, visible: Callable[[], bool]) -> float:
    """Milliseconds from an edit until `visible` is true for the first time."""
    paddock.edit(old, new)
    started = time.perf_counter()
    while not visible():
        if time.perf_counter() - started > TIMEOUT_S:
            raise SystemExit(
                f"the edit to {new!r} was not applied within {TIMEOUT_S} s\n{paddock.log_tail()}"
            )
        time.sleep(POLL_S)
    return (time.perf_counter() - started) * 1000


def live_edits(paddock: RunningPaddock) -> list[float]:
    """Edits of an alias, which need no new process."""
    taken = []
    for number in range(REPEATS):
        old, new = f"alias-{number}", f"alias-{number + 1}"
        taken.append(time_edit_ms(paddock, old, new, partial(has_alias, paddock, new)))
    return taken


def has_alias(paddock: RunningPaddock, alias: str) -> bool:
    """Whether the first model answers to this alias."""
    return alias in paddock.model("first")["aliases"]


def broken_edits(paddock: RunningPaddock) -> list[float]:
    """Edits that are refused, until the API says so. Each is mended again, unmeasured."""
    taken = []
    for _ in range(REPEATS):
        good, bad = "[models.second]", "[models.second]\ncontxt = 1"
        taken.append(time_edit_ms(paddock, good, bad, lambda: bool(paddock.status()["manifest"]["error"])))
        time_edit_ms(paddock, bad, good, lambda: not paddock.status()["manifest"]["error"])
    return taken


def main() -> None:
    """Measure and print one table."""
    with tempfile.TemporaryDirectory(prefix="paddock-bench-") as name:
        folder = Path(name)
        engine, model = write_fake_engine(folder / "engine"), write_tiny_gguf(folder / "tiny.gguf")
        tables = TABLES.format(engine=engine.path, model=model)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PADDOCK_STATE_DIR": str(folder / "state")}
        paddock = start_paddock(folder / "up", tables, environment)
        try:
            paddock.wait_state("second", "ready", TIMEOUT_S)
            rows = {"live edit applied": live_edits(paddock), "mistake shown": broken_edits(paddock)}
        finally:
            paddock.close()
    table = Table("what", "median", "fastest", "slowest", title=f"{REPEATS} edits, milliseconds")
    for name, taken in rows.items():
        table.add_row(name, *(f"{value:.0f}" for value in (statistics.median(taken), min(taken), max(taken))))
    Console().print(table)


if __name__ == "__main__":
    main()
