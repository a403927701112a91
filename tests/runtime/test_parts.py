"""The small parts of the runtime on their own: restarts, log lines, slots, limits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.runtime.logs import LINE_LIMIT, LogBuffer, clean_line
from framework.runtime.restarts import CrashHistory
from framework.runtime.sampler import parse_slot, slot_draft
from framework.runtime.shielded import finish
from framework.runtime.shop import StartLimit
from framework.values.naming import LONGEST_BYTES, file_name
from framework.values.request import RestartPolicy

POLICY = RestartPolicy()


def test_delays_double_from_zero() -> None:
    history = CrashHistory()
    delays = [history.crashed(float(at), 0.0, RestartPolicy(max_crashes=99)) for at in range(9)]
    assert delays == [0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_a_download_waits_seconds_from_its_first_failure() -> None:
    history, policy = CrashHistory(), RestartPolicy()
    assert [history.start_failed(policy, fetching=True) for _ in range(6)] == [5, 10, 20, 40, 60, 60]


def test_the_sixth_crash_in_the_window_gives_up() -> None:
    history = CrashHistory()
    delays = [history.crashed(at * 10.0, 0.0, POLICY) for at in range(6)]
    assert delays[-1] is None
    assert None not in delays[:-1]


def test_crashes_outside_the_window_do_not_count() -> None:
    history = CrashHistory()
    for at in range(4):
        history.crashed(at * 200.0, 0.0, POLICY)
    assert history.count == 3


def test_long_service_resets_the_count() -> None:
    history = CrashHistory()
    for at in range(4):
        history.crashed(float(at), 0.0, POLICY)
    assert history.crashed(5.0, POLICY.stable_after_s, POLICY) == 0.0


def test_only_the_first_two_waits_may_be_cut_short() -> None:
    history = CrashHistory()
    early = []
    for at in range(3):
        history.crashed(float(at), 0.0, POLICY)
        early.append(history.may_start_early)
    assert early == [True, True, False]


@given(st.text())
def test_a_cleaned_line_holds_no_terminal_control(raw: str) -> None:
    text = clean_line(raw)
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F for c in text)
    assert "\u202e" not in text
    assert len(text) <= LINE_LIMIT * 5


def test_colour_codes_go_and_other_control_is_shown() -> None:
    assert clean_line("\x1b[31mred\x1b[0m \x07bell\n") == "red \\x07bell"


def test_a_secret_never_reaches_the_buffer() -> None:
    log = LogBuffer()
    log.secrets = ("s3cret",)
    log.append("key is s3cret!")
    assert log.last(1)[0].text == "key is <redacted>!"


def test_log_files_are_private_and_the_oldest_go(tmp_path: Path) -> None:
    log = LogBuffer()
    for number in range(15):
        log.open_file(tmp_path / f"{number}.log")
        log.append("line")
    log.close_file()
    files = list(tmp_path.glob("*.log"))
    assert len(files) == 10
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)


async def test_a_follower_sees_old_and_new_lines_once() -> None:
    log = LogBuffer()
    log.append("one")
    lines = log.follow(0)
    seen = [(await anext(lines)).text]
    log.append("two")
    seen.append((await anext(lines)).text)
    await lines.aclose()
    assert seen == ["one", "two"]


OLD_SLOT = {
    "id": 1,
    "n_ctx": 4096,
    "is_processing": True,
    "n_prompt_tokens": 30,
    "n_prompt_tokens_processed": 20,
}
NEW_SLOT = {**OLD_SLOT, "n_prompt_tokens_cache": 5, "next_token": [{"n_decoded": 5}]}


@pytest.mark.parametrize(
    ("raw", "state", "prompt", "done", "generated"),
    [
        pytest.param({"id": 0, "n_ctx": 512, "is_processing": False}, "idle", 0, 0, 0, id="never-used"),
        pytest.param(OLD_SLOT, "processing_prompt", 30, 20, 0, id="prefill"),
        pytest.param(NEW_SLOT, "generating", 25, 25, 5, id="list-of-next-tokens"),
        pytest.param(
            {**NEW_SLOT, "next_token": {"n_decoded": 5}}, "generating", 25, 25, 5, id="one-next-token"
        ),
        pytest.param({"id": "x", "n_ctx": -1, "next_token": [7]}, "idle", 0, 0, 0, id="nonsense"),
    ],
)
def test_slots_of_all_builds_are_read(
    raw: dict[str, object], state: str, prompt: int, done: int, generated: int
) -> None:
    slot = parse_slot(raw)
    assert (slot.state, slot.prompt_tokens, slot.prompt_done, slot.generated) == (
        state,
        prompt,
        done,
        generated,
    )


@pytest.mark.parametrize(
    ("told", "draft"),
    [
        pytest.param(None, None, id="another-engine"),
        pytest.param({"types": [], "fallback_reason": "none-requested"}, None, id="not-asked-for"),
        pytest.param(
            {"types": ["ngram-mod"], "depth": 4, "drafted": 20, "accepted": 15, "gain": 0.307},
            {"depth": 4, "drafted": 20, "accepted": 15, "controller": None, "reason": None, "gain": 0.31},
            id="drafts",
        ),
        pytest.param(
            {"types": [], "fallback_reason": "no-rollback", "drafted": 2, "accepted": 9, "gain": 1e300},
            {
                "depth": 0,
                "drafted": 2,
                "accepted": 2,
                "controller": None,
                "reason": "no-rollback",
                "gain": 99.0,
            },
            id="fell-back",
        ),
        pytest.param(
            {"types": ["x"], "depth": "9", "controller": "<b>", "idle_reason": ["a"], "gain": "1"},
            {"depth": 0, "drafted": 0, "accepted": 0, "controller": None, "reason": None, "gain": None},
            id="hostile",
        ),
    ],
)
def test_what_a_slot_drafts_is_read_from_the_native_engine(told: Any, draft: dict[str, Any] | None) -> None:
    assert slot_draft(told) == draft


async def test_a_raised_start_limit_admits_who_waits() -> None:
    limit = StartLimit(1)
    entered: list[int] = []

    async def start(number: int) -> None:
        async with limit.slot():
            entered.append(number)
            await asyncio.sleep(60)

    tasks = [asyncio.create_task(start(number)) for number in range(3)]
    await asyncio.sleep(0.01)
    before = list(entered)
    limit.set_limit(2)
    await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert (before, entered) == ([0], [0, 1])


async def test_a_cancelled_wait_gives_its_place_to_the_next() -> None:
    limit = StartLimit(1)
    entered = asyncio.Event()

    async def hold() -> None:
        async with limit.slot():
            await asyncio.sleep(60)

    async def enter() -> None:
        async with limit.slot():
            entered.set()

    holder, waiter, last = (asyncio.create_task(work) for work in (hold(), hold(), enter()))
    await asyncio.sleep(0.01)
    waiter.cancel()
    holder.cancel()
    await asyncio.wait_for(entered.wait(), 20)
    await asyncio.wait({holder, waiter, last})


async def test_work_is_finished_although_its_caller_is_cancelled() -> None:
    done = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0.05)
        done.set()

    caller = asyncio.create_task(finish(work()))
    await asyncio.sleep(0.01)
    caller.cancel()
    await asyncio.wait({caller})
    assert caller.cancelled()
    assert done.is_set()


@given(st.text(min_size=1, max_size=200))
def test_a_file_name_is_one_harmless_path_component(name: str) -> None:
    encoded = file_name(name)
    assert len(encoded.encode()) <= LONGEST_BYTES
    assert "/" not in encoded
    assert not encoded.startswith(".")


@given(st.text(max_size=200), st.text(max_size=200))
def test_different_names_have_different_file_names(one: str, two: str) -> None:
    assert (one == two) == (file_name(one) == file_name(two))
