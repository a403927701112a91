"""Sixteen clients and all that can go wrong around them (07): nothing is lost, doubled or left behind.

Everything is decided by counts; times only bound how long is waited for a machine that is busy. The seed is
printed, and `CHAOS_SEED` sets it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.chaos.campaign import Campaign
from tests.support.chaos.faults import PLAIN, Fault, fill_disk, jump_clock, leave_early, rewrite_manifest
from tests.support.chaos.small_disk import small_disk
from tests.support.chaos.wall_clock import WallClock
from tests.support.chaos.world import World

# Far more than it takes, for machines that do other work.
pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

SEED = int(os.environ.get("CHAOS_SEED", "20261130"))
DISK = "24m"


def shuffled(faults: Mapping[str, Fault]) -> list[tuple[str, Fault]]:
    """In an order that the seed decides."""
    pairs = list(faults.items())
    random.Random(SEED).shuffle(pairs)
    return pairs


def test_a_storm_with_engines_that_end_with_their_manager(
    tmp_path: Path, smollm2: Path, clean_env: dict[str, str]
) -> None:
    print(f"seed {SEED}")
    clock = WallClock(tmp_path / "clock")
    environment = {**clean_env, **clock.environment}
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(tmp_path / "state", DISK))
        world = World(tmp_path / "up", smollm2, environment, on_exit="stop", seed=SEED, disk=disk)
        stack.enter_context(world)
        campaign = Campaign(world, SEED)
        faults: dict[str, Fault] = {
            "kill a child": PLAIN["kill a child"],
            "kill all children": PLAIN["kill all children"],
            "pause a child": PLAIN["pause a child"],
            "steal a port": PLAIN["steal a port"],
            "clients that leave": leave_early(100),
            "the clock jumps": jump_clock(clock),
            "the disk is full": fill_disk(disk),
            "no file may grow": fill_disk(None),
            "the manifest is rewritten": rewrite_manifest(50),
        }
        for name, fault in shuffled(faults):
            campaign.run(name, fault)
        campaign.check_leaks()
        campaign.run("kill up", PLAIN["kill up"])
        counts = campaign.counts()
        assert not counts.faults, "\n".join(counts.faults)
        assert world.paddock.stop() == 0
        assert world.engines() == {}


def test_a_storm_with_engines_that_outlive_their_manager(
    tmp_path: Path, smollm2: Path, clean_env: dict[str, str]
) -> None:
    print(f"seed {SEED}")
    with World(tmp_path / "up", smollm2, clean_env, on_exit="keep", seed=SEED) as world:
        campaign = Campaign(world, SEED)
        names = ("end up", "kill up while it loads", "kill up while it starts")
        for name, fault in shuffled({name: PLAIN[name] for name in names}):
            campaign.run(name, fault)
        campaign.new_life()
        campaign.run("kill a child", PLAIN["kill a child"])
        campaign.check_leaks()
        counts = campaign.counts()
        assert not counts.faults, "\n".join(counts.faults)
        assert world.paddock.stop() == 0
        assert len(world.engines()) == world.instances
