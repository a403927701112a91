"""What proves that a process is ours, and what becomes of one that is not proven to be (07 §7, §8)."""

from __future__ import annotations

import os
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import engine_table, model_table
from tests.e2e.keeping import (
    KEEP,
    STOP,
    change_record,
    identity_of,
    is_alive,
    record_of,
    record_path,
    stranger,
)
from tests.support.paddock import RunningPaddock
from tests.support.waiting import unused_port, wait_until


def test_a_wrong_key_proves_nothing(kept: RunningPaddock) -> None:
    before = kept.pids()["a"]
    kept.kill()
    change_record(kept, key="not-the-key")
    kept.restart()
    assert kept.events(kind="adopted") == []
    assert not is_alive(before[0])
    assert kept.wait_state("a", "ready")["instances"][0]["pid"] not in before


def test_an_engine_that_serves_another_model_by_now_is_not_taken_over(
    kept: RunningPaddock, tiny_gguf: Path
) -> None:
    before, record = kept.pids()["a"], record_of(kept)
    kept.kill()
    plan = {**record["committed"]["plan"], "main_gguf": str(tiny_gguf.with_name("other.gguf"))}
    change_record(kept, committed={**record["committed"], "plan": plan})
    kept.restart()
    assert not is_alive(before[0])
    assert kept.events(kind="adopted") == []


@pytest.mark.parametrize("knows_start", [False, True])
def test_a_number_that_belongs_to_a_stranger_by_now_is_left_alone(
    kept: RunningPaddock, knows_start: bool
) -> None:
    pid = kept.pids()["a"][0]
    kept.kill()
    with stranger("sleep", "300") as other:
        identity = identity_of(other) if knows_start else record_of(kept)["identity"]
        change_record(kept, pid=other, identity=identity)
        kept.restart()
        assert is_alive(other)
        # Its own process is found by the mark.
        assert not is_alive(pid)
        assert [event["data"]["step"] for event in kept.events(kind="orphan")] == ["mark"]
        kept.wait_state("a", "ready")


def test_a_start_that_was_noted_by_another_method_is_left_as_it_is(kept: RunningPaddock) -> None:
    pid = kept.pids()["a"][0]
    kept.kill()
    change_record(kept, identity="ps:1700000000.5")
    kept.restart()
    assert is_alive(pid)
    orphan = kept.events(kind="orphan")[0]
    assert (orphan["data"]["verdict"], orphan["data"]["pid"]) == ("left", pid)
    assert "end it yourself" in orphan["message"]
    assert kept.wait_state("a", "ready")["instances"][0]["generation"] == 2
    assert record_of(kept)["pid"] == pid
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "garbage", [b"", b"{", b"[]", b'{"version": 1, "pid": -1}', b"\xff" * 100, b"[" * 9999]
)
def test_garbage_is_no_record(kept: RunningPaddock, garbage: bytes) -> None:
    pid = kept.pids()["a"][0]
    kept.kill()
    record_path(kept).write_bytes(garbage)
    kept.restart()
    assert not is_alive(pid)
    assert kept.wait_state("a", "ready")["instances"][0]["generation"] == 1
    (orphan,) = kept.events(kind="orphan")
    assert orphan["reason"]["code"] == "not_taken_over"
    assert "its record, instances/a.0@1.json in the state directory, is damaged" in orphan["message"]


def test_a_link_in_place_of_a_record_is_removed_and_not_followed(kept: RunningPaddock) -> None:
    elsewhere = kept.state_dir.parent / "elsewhere.json"
    kept.kill()
    record_path(kept).rename(elsewhere)
    record_path(kept).symlink_to(elsewhere)
    kept.restart()
    assert kept.events(kind="adopted") == []
    assert elsewhere.exists()


def test_a_stranger_on_the_port_of_an_engine_that_is_gone_is_left_alone(kept: RunningPaddock) -> None:
    record = record_of(kept)
    kept.kill()
    os.kill(record["pid"], signal.SIGKILL)
    wait_until(lambda: not is_alive(record["pid"]), 20, "the engine to be gone")
    server = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(record["port"])]
    with stranger(*server) as other:
        kept.restart()
        instance = kept.wait_state("a", "ready")["instances"][0]
        assert instance["port"] != record["port"]
        assert is_alive(other)
    assert kept.events(kind="adopted") == []
    assert kept.events(kind="orphan") == []


@pytest.mark.engine
@pytest.mark.parametrize("on_exit", [KEEP, STOP])
def test_servers_that_people_started_are_never_touched(
    paddock_up: StartPaddock, smollm2: Path, engine_binary: Path, on_exit: str
) -> None:
    def by_hand(**environment: str) -> Any:
        line = ("-m", str(smollm2), "--port", str(unused_port()), "-c", "256", "--host", "127.0.0.1")
        return stranger(str(engine_binary), *line, **environment)

    build = {"PADDOCK_LLAMA_CPP": str(engine_binary.parent)}
    with by_hand() as first, by_hand(**build) as second:
        paddock = paddock_up(model_table("a", smollm2), server=on_exit, environment=build)
        paddock.wait_state("a", "ready")
        paddock.kill()
        paddock.restart()
        paddock.wait_state("a", "ready")
        assert is_alive(first)
        assert is_alive(second)
        assert not {first, second} & {event["data"]["pid"] for event in paddock.events(kind="orphan")}


def test_another_state_directory_is_another_managers_business(
    kept: RunningPaddock, paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    pid = kept.pids()["a"][0]
    kept.kill()
    paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf), server=KEEP)
    assert is_alive(pid)
    kept.restart()
    assert kept.pids()["a"] == [pid]


def test_what_is_noted_can_be_read_by_nobody_else(kept: RunningPaddock) -> None:
    folder = kept.state_dir / "instances"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name for path in folder.iterdir()} == {"a.0@1.json", "a.0@1.out"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
