"""Everything that can go wrong around a `paddock up` under load, for minutes: nothing may be lost or left.

Run by `make bench`, or by hand: `python -m bench.chaos --minutes 30 --seed 7`. Ends with status 1 when
anything happened that must not: a request without an answer or a clear error, an answer of another model,
anything twice, processes, sockets or files that are left.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.support.chaos.campaign import MIB, Campaign, Counts
from tests.support.chaos.faults import PLAIN, Fault, fill_disk, jump_clock, leave_early, rewrite_manifest
from tests.support.chaos.models import OnExit
from tests.support.chaos.small_disk import small_disk
from tests.support.chaos.wall_clock import WallClock
from tests.support.chaos.world import World
from tools.fetch import GROUPS, ROOT, fetch

SECONDS_PER_MINUTE = 60.0
DISK = "64m"
# These say nothing of what else may happen meanwhile, so two of them may.
TOGETHER = ("kill a child", "kill all children", "clients that leave", "stop a child")
PAIRS = 2
ENDS_UP = frozenset(name for name in PLAIN if "up" in name.split())
COUNTED = ("whole", "error", "broken", "left", "lost", "unclear", "wrong", "twice")


@dataclass(frozen=True)
class Outcome:
    """One world, from its start to its end."""

    on_exit: OnExit
    counts: Counts
    recovered_s: Mapping[str, list[float]]
    held: str


def environment(folder: Path) -> dict[str, str]:
    """Of a process that knows no user."""
    home = folder / "home"
    home.mkdir()
    own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "PYTHONPATH": str(ROOT)}
    return {"LANG": "C.UTF-8", "PATH": os.environ["PATH"], "PADDOCK_STATE_DIR": str(folder / "state"), **own}


def storm(on_exit: OnExit, source: Path, seconds: float, seed: int, console: Console) -> Outcome:
    """Rounds of all faults until time is up, one at least; each begins when all models answer."""
    dice = random.Random(f"{seed}-{on_exit}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paddock-chaos-")))
        disk = stack.enter_context(small_disk(folder / "state", DISK))
        clock = WallClock(folder / "clock")
        variables = {**environment(folder), **clock.environment}
        world = World(folder / "up", source, variables, on_exit=on_exit, seed=seed, disk=disk)
        stack.enter_context(world)
        campaign = Campaign(world, seed, lambda line: console.print(f"  {line}", highlight=False))
        faults: dict[str, Fault] = {
            **PLAIN,
            "clients that leave": leave_early(1000),
            "the clock jumps": jump_clock(clock),
            "the disk is full": fill_disk(disk),
            "the manifest is rewritten": rewrite_manifest(50),
        }
        if on_exit == "stop":
            # Nothing is left of which one could hang.
            del faults["kill up and stop a child"]
        until_s = time.monotonic() + seconds
        play(campaign, faults, dice)
        while time.monotonic() < until_s:
            play(campaign, faults, dice)
        calm = campaign.check_leaks()
        counts = campaign.counts()
        world.paddock.stop()
        left = len(world.engines())
        assert left == (world.instances if on_exit == "keep" else 0), f"{left} engines after the end"
        before, after = calm.before, calm.after
        held = (
            f"{before.descriptors} → {after.descriptors}, {before.sockets} → {after.sockets},"
            f" {before.rss_bytes // MIB} → {after.rss_bytes // MIB}"
        )
        return Outcome(on_exit, counts, campaign.recovered_s, held)


def play(campaign: Campaign, faults: Mapping[str, Fault], dice: random.Random) -> None:
    """Each fault once, and some pairs at once, in an order by chance.

    What `up` holds is compared with its start before it goes.
    """
    names: list[tuple[str, ...]] = [(name,) for name in faults]
    names += [tuple(dice.sample(TOGETHER, 2)) for _ in range(PAIRS)]
    dice.shuffle(names)
    for some in names:
        is_end = any(name in ENDS_UP for name in some)
        if is_end:
            campaign.check_leaks()
        campaign.run_all([(name, faults[name]) for name in some])
        if is_end:
            campaign.new_life()


def print_tables(outcomes: list[Outcome], seed: int, console: Console) -> None:
    """What came of all requests, and how long each fault was felt."""
    table = Table(title=f"seed {seed}; 16 clients", title_justify="left")
    for column in (
        "on_exit",
        *COUNTED,
        "run twice",
        "orphans",
        "zombies",
        "descriptors, sockets, RSS in MiB",
    ):
        table.add_column(column, justify="right")
    for one in outcomes:
        seen = [str(one.counts.verdicts.get(kind, 0)) for kind in COUNTED]
        left = [str(len(found)) for found in (one.counts.run_twice, one.counts.orphans, one.counts.zombies)]
        table.add_row(one.on_exit, *seen, *left, one.held)
    console.print(table)
    times = Table(title="seconds from the fault until all models answer", title_justify="left")
    for column in ("on_exit", "fault", "times", "median", "longest"):
        times.add_column(column, justify="left" if column == "fault" else "right")
    for one in outcomes:
        for name, seconds in sorted(one.recovered_s.items()):
            values = f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}"
            times.add_row(one.on_exit, name, str(len(seconds)), *values)
    console.print(times)
    for one in outcomes:
        console.print(f"{one.on_exit}: errors by code: {one.counts.codes}", highlight=False)


def main() -> None:
    """Run both worlds, print tables, end with 1 when something was lost, doubled or left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=4.0, help="for both worlds together")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    asked = parser.parse_args()
    fetch(GROUPS["model"])
    source = ROOT / GROUPS["model"][0].target
    console = Console(width=160)
    console.print(f"seed {asked.seed}")
    outcomes = []
    both: tuple[OnExit, ...] = ("stop", "keep")
    for on_exit in both:
        console.print(f"on_exit = {on_exit}")
        seconds = asked.minutes * SECONDS_PER_MINUTE / 2
        outcomes.append(storm(on_exit, source, seconds, asked.seed, console))
    print_tables(outcomes, asked.seed, console)
    faults = [fault for one in outcomes for fault in one.counts.faults]
    for fault in faults:
        console.print(fault, highlight=False)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
