"""Why an engine ended while it served, where more than its exit code tells (FM-18)."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.runtime.crash_cause import CrashWatch, crash_cause, restart_policy
from framework.runtime.host_kills import host_kills
from framework.runtime.logs import LogBuffer
from framework.values.request import RestartPolicy
from tests.runtime.test_remote_devices import BROKEN, SERVER, remote_plan

SAVING = (
    "0.9 I srv   prompt_save:  - saving prompt with length 41000, total state size = 2460.000 MiB (draft: 0)"
)


def kept(*lines: str) -> LogBuffer:
    log = LogBuffer()
    log.extend(lines)
    return log


def test_a_kill_that_the_system_counted_is_lack_of_host_memory() -> None:
    counts = iter((4, 4, 5))
    watch = CrashWatch(count_kills=lambda: next(counts))
    watch.started()
    cause = watch.cause(-9, None, kept(SAVING))
    assert cause is not None
    assert cause.code == "host_oom_killed"
    assert "saving the state of a prompt" in cause.message
    assert "--cache-ram" in cause.remedy


def test_such_a_process_is_restarted_once() -> None:
    cause = crash_cause(-9, (SAVING,), None, host_kills=1)
    assert restart_policy(cause, RestartPolicy()).max_crashes == 1
    assert restart_policy(cause, RestartPolicy(max_crashes=0)).max_crashes == 0
    assert restart_policy(None, RestartPolicy()) == RestartPolicy()


@pytest.mark.parametrize(
    ("exit_code", "kills"),
    [(-9, 0), (-11, 1), (1, 3), (None, 0)],
    ids=["killed by hand", "fault", "exit", "?"],
)
def test_other_ends_are_not_blamed_on_host_memory(exit_code: int | None, kills: int) -> None:
    assert crash_cause(exit_code, (SAVING,), None, host_kills=kills) is None


def test_of_a_process_of_an_earlier_life_is_said_what_can_be_known() -> None:
    cause = crash_cause(None, (SAVING,), None, host_kills=1)
    assert cause is not None
    assert (cause.code, cause.evidence) == ("host_oom_killed", {"signal": None})
    assert "most likely this one" in cause.message
    assert "How it ended is not known" in cause.message


def test_an_engine_that_lost_its_server_says_which() -> None:
    cause = crash_cause(-6, BROKEN, remote_plan(SERVER), host_kills=0)
    assert cause is not None
    assert cause.code == "rpc_lost"
    assert SERVER in cause.message


def lay(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("group", "place"),
    [
        pytest.param("0::/a.slice/b\n", "sys/fs/cgroup/a.slice/b/memory.events", id="one hierarchy"),
        pytest.param(
            "8:pids:/\n4:memory:/a/b\n0::/\n", "sys/fs/cgroup/memory/a/b/memory.oom_control", id="older"
        ),
        pytest.param("3:cpu,memory:/a\n", "sys/fs/cgroup/memory/a/memory.oom_control", id="joined"),
    ],
)
def test_kills_are_counted_by_our_control_group(tmp_path: Path, group: str, place: str) -> None:
    lay(tmp_path, proc__self__cgroup=group, proc__vmstat="oom_kill 70\n")
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text("low 0\noom_kill 3\n")
    assert host_kills(tmp_path) == 3


def test_without_such_a_counter_the_whole_system_counts(tmp_path: Path) -> None:
    lay(tmp_path, proc__self__cgroup="0::/\n", proc__vmstat="nr_free_pages 1\noom_kill 70\n")
    assert host_kills(tmp_path) == 70


def test_where_nobody_counts_nothing_is_known(tmp_path: Path) -> None:
    assert host_kills(tmp_path) is None
