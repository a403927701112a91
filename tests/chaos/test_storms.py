"""Sixteen clients and all that can go wrong around them (07): nothing is lost, doubled or left behind."""

from __future__ import annotations

import os
import random
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.chaos.campaign import Campaign
from tests.support.chaos.faults import (
    PLAIN,
    Fault,
    fill_disk,
    jump_clock,
    leave_early,
    rewrite_manifest,
)
from tests.support.chaos.small_disk import SmallDisk
from tests.support.chaos.wall_clock import WallClock
from tests.support.chaos.world import World

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

SEED = int(os.environ.get("CHAOS_SEED", "20261130"))


def test_a_storm_with_engines_that_end_with_their_manager(
    tmp_path: Path, smollm2: Path, clean_env: dict[str, str]
) -> None:
    print(f"seed {SEED}")
    with ExitStack() as stack:
        disk = stack.enter_context(SmallDisk(tmp_path / "state", "24m"))
        clock = WallClock(tmp_path / "clock")
        world = stack.enter_context(
            World(
                tmp_path / "up",
                smollm2,
                {**clean_env, **clock.environment},
                on_exit="stop",
                seed=SEED,
                wrapper=disk.wrapper,
                state_seen=disk.outside,
            )
        )
        campaign = Campaign(world, SEED)
        faults: dict[str, Fault] = {
            "kill a child": PLAIN["kill a child"],
            "kill all children": PLAIN["kill all children"],
            "pause a child": PLAIN["pause a child"],
            "steal a port": PLAIN["steal a port"],
            "clients that leave": leave_early(100),
            "the clock jumps": jump_clock(clock),
            "the disk is full": fill_disk(disk),
            "the manifest is rewritten": rewrite_manifest(50),
        }
        names = list(faults)
        random.Random(SEED).shuffle(names)
        for name in names:
            campaign.run(name, faults[name])
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
        for name in ("kill up", "kill a child", "end up", "kill up"):
            campaign.run(name, PLAIN[name])
        campaign.new_life()
        campaign.run("steal a port", PLAIN["steal a port"])
        campaign.check_leaks()
        counts = campaign.counts()
        assert not counts.faults, "\n".join(counts.faults)
        assert world.paddock.stop() == 0
        assert len(world.engines()) == world.instances
