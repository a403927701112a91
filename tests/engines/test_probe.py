"""Asking a binary once, for everybody (06 §4.1, §4.8-4.10)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import get_args

import psutil
import pytest

from framework.engines.discovery import describe_binary, find_binary
from framework.engines.probe import INCONCLUSIVE_S, CapabilityCache, probe
from framework.values.engine import EngineBinary, EngineRef
from tests.conftest import MakeFake
from tests.engines.eras import caps_of
from tests.engines.programs import program, write_program
from tests.fake_engine.eras import Name
from tests.support.waiting import eventually

ENV = {"PATH": os.environ["PATH"]}
GOOD = "--spec-type none,draft-mtp   types"


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Counted:
    """A program that notes every question, and answers `--help` with `body`."""

    def __init__(self, folder: Path, body: str) -> None:
        self.notes = folder / "notes"
        self.binary = program(folder, f'echo "$1 $$" >> {self.notes}\n{body}')

    def asked(self) -> list[str]:
        lines = self.notes.read_text("ascii").splitlines() if self.notes.exists() else []
        return [line.split()[0] for line in lines]

    def pid(self) -> int:
        return int(self.notes.read_text("ascii").splitlines()[-1].split()[1])


@pytest.fixture
def healthy(tmp_path: Path) -> Counted:
    return Counted(tmp_path, f"echo '{GOOD}'")


@pytest.fixture
def failing(tmp_path: Path) -> Counted:
    return Counted(tmp_path, f"echo '{GOOD}'; exit 1")


@pytest.fixture
def hanging(tmp_path: Path) -> Counted:
    return Counted(tmp_path, "exec sleep 60")


async def test_a_conclusive_answer_is_kept_for_ever(healthy: Counted) -> None:
    clock = Clock()
    cache = CapabilityCache(clock=clock)
    first = await cache.get(healthy.binary, ENV)
    clock.now_s += 1e9
    assert await cache.get(healthy.binary, ENV) is first
    assert (first.conclusive, first.mtp_token) == (True, "draft-mtp")
    assert healthy.asked() == ["--help", "--version"]


async def test_an_inconclusive_answer_is_kept_for_a_minute(failing: Counted) -> None:
    clock = Clock()
    cache = CapabilityCache(clock=clock)
    first = await cache.get(failing.binary, ENV)
    clock.now_s += INCONCLUSIVE_S - 1
    assert await cache.get(failing.binary, ENV) is first
    clock.now_s += 1
    assert await cache.get(failing.binary, ENV) is not first
    assert (first.conclusive, first.fault) == (False, "exited with 1")


async def test_a_changed_file_is_asked_again(healthy: Counted) -> None:
    cache = CapabilityCache()
    await cache.get(healthy.binary, ENV)
    write_program(healthy.binary.entry, "echo '--new   flag'; true")
    changed = describe_binary(healthy.binary.entry, "manifest")
    assert (await cache.get(changed, ENV)).flags == {"--new"}


async def test_callers_that_come_together_share_one_probe(healthy: Counted) -> None:
    cache = CapabilityCache()
    answers = await asyncio.gather(*(cache.get(healthy.binary, ENV) for _ in range(5)))
    assert healthy.asked() == ["--help", "--version"]
    assert all(answer is answers[0] for answer in answers)


async def test_a_caller_that_leaves_does_not_end_the_probe_of_others(tmp_path: Path) -> None:
    slow = Counted(tmp_path, f"sleep 0.3; echo '{GOOD}'")
    cache = CapabilityCache()
    leaving, staying = (asyncio.create_task(cache.get(slow.binary, ENV)) for _ in range(2))
    await eventually(slow.asked)
    leaving.cancel()
    assert (await staying).conclusive
    assert leaving.cancelled()


async def test_the_last_caller_to_leave_ends_the_probe(hanging: Counted) -> None:
    cache = CapabilityCache()
    caller = asyncio.create_task(cache.get(hanging.binary, ENV))
    await eventually(hanging.asked)
    pid = hanging.pid()
    caller.cancel()
    await eventually(lambda: not psutil.pid_exists(pid), 20.0, "the end of the probe")


async def test_who_comes_after_a_cancelled_probe_gets_one_of_his_own(hanging: Counted) -> None:
    cache = CapabilityCache(timeout_s=0.3)
    caller = asyncio.create_task(cache.get(hanging.binary, ENV))
    await eventually(hanging.asked)
    caller.cancel()
    assert (await cache.get(hanging.binary, ENV)).fault == "did not end within 0.3 s"


async def test_a_missing_file_is_never_remembered(healthy: Counted) -> None:
    cache = CapabilityCache()
    healthy.binary.entry.unlink()
    assert (await cache.get(healthy.binary, ENV)).fault == "does not exist any more"
    write_program(healthy.binary.entry, f"echo '{GOOD}'")
    assert (await cache.get(healthy.binary, ENV)).conclusive


async def test_a_signal_is_named(tmp_path: Path) -> None:
    caps = await probe(program(tmp_path, "kill -ILL $$"), ENV)
    assert (caps.conclusive, caps.fault) == (False, "was ended by signal 4 when asked for its help text")


async def test_settings_of_the_manager_do_not_reach_the_probe(tmp_path: Path) -> None:
    binary = program(tmp_path, 'echo "--x$LLAMA_ARG_DRAFT_MAX   flag"')
    assert (await probe(binary, {**ENV, "LLAMA_ARG_DRAFT_MAX": "4"})).flags == {"--x"}


@pytest.mark.parametrize("era", get_args(Name))
async def test_builds_of_all_times_answer(fake_engine: MakeFake, era: Name) -> None:
    caps = await probe(describe_binary(fake_engine(help=era).path, "manifest"), ENV)
    assert caps == caps_of(era)


@pytest.mark.parametrize(
    ("help_text", "fault"),
    [
        pytest.param("fails", "exited with 1", id="exit status 1 with text"),
        pytest.param("empty", "has no help text", id="no text"),
        pytest.param("hangs", "did not end within 0.5 s", id="hangs"),
    ],
)
async def test_a_help_that_fails_is_inconclusive(fake_engine: MakeFake, help_text: str, fault: str) -> None:
    binary = describe_binary(fake_engine(help=help_text).path, "manifest")
    caps = await probe(binary, ENV, timeout_s=0.5 if help_text == "hangs" else 10.0)
    assert (caps.conclusive, caps.fault) == (False, fault)


async def test_a_help_that_fails_still_shows_what_there_is(fake_engine: MakeFake) -> None:
    caps = await probe(describe_binary(fake_engine(help="fails").path, "manifest"), ENV)
    assert (caps.mtp_token, caps.has("--metrics")) == ("draft-mtp", True)


@pytest.fixture(scope="module")
def real() -> EngineBinary:
    return find_binary(EngineRef(), os.environ)


@pytest.mark.engine
async def test_the_real_engine_answers_conclusively(real: EngineBinary) -> None:
    caps = await probe(real, os.environ)
    assert (caps.conclusive, caps.fault) == (True, "")
    assert caps.version != "unknown"
    assert {"--model", "--port", "--parallel", "--ctx-size", "--metrics"} <= caps.flags


async def test_a_help_text_that_no_engine_has_is_not_read_in_part(tmp_path: Path) -> None:
    body = f"echo '{GOOD}'; head -c 300000 /dev/zero | tr '\\0' x"
    caps = await probe(program(tmp_path, body), ENV)
    assert (caps.conclusive, caps.flags, caps.fault) == (
        False,
        frozenset(),
        "has a help text of more than 256 KiB",
    )


async def test_a_version_text_without_end_leaves_the_help_text_to_be_read(tmp_path: Path) -> None:
    body = f'if [ "$1" = --help ]; then echo "{GOOD}"; else head -c 300000 /dev/zero | tr "\\0" 1; fi'
    caps = await probe(program(tmp_path, body), ENV)
    assert (caps.conclusive, caps.version) == (True, "unknown")
