"""Engines that outlive `paddock up`, and the next one that takes them over (07 §5.5, §8.7)."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import httpx
import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import CHAT, Stream, chat, engine_table, model_table
from tests.e2e.keeping import (
    KEEP,
    STOP,
    events_of_this_life,
    is_alive,
    record_of,
    record_path,
    wait_committed,
)
from tests.support.fakes import FakeEngine
from tests.support.paddock import RunningPaddock


@pytest.mark.engine
def test_a_killed_manager_leaves_its_engines_to_the_next_one(paddock_up: StartPaddock, smollm2: Path) -> None:
    paddock = paddock_up(model_table("a", smollm2) + model_table("b", smollm2), server=KEEP)
    for name in "ab":
        paddock.wait_state(name, "ready")
        wait_committed(paddock, f"{name}.0@1")
    before = {name: paddock.model(name)["instances"][0] for name in "ab"}
    paddock.kill()
    paddock.restart()
    for name in "ab":
        entry = paddock.wait_state(name, "ready")["instances"][0]
        assert chat(paddock, name).status_code == 200
        told = ("pid", "port", "generation", "plan", "running", "attempts", "load_s", "restarts")
        assert {key: entry[key] for key in told} == {key: before[name][key] for key in told}
    assert [event["data"]["digest_equal"] for event in paddock.events(kind="adopted")] == [True, True]
    assert paddock.events(kind="orphan") == []
    assert events_of_this_life(paddock, "ready") == []
    lines = paddock.api("GET", "/models/a/logs").text
    assert "listening on" in lines
    assert record_of(paddock)["key"] not in lines
    # What it prints from here on is seen as well.
    paddock.wait(
        lambda: lines != paddock.api("GET", "/models/a/logs").text or chat(paddock, "a").is_error,
        20,
        "a line about the request",
    )


@pytest.mark.engine
def test_an_answer_that_is_still_made_when_its_engine_is_taken_over_keeps_it_busy(
    paddock_up: StartPaddock, smollm2: Path
) -> None:
    paddock = paddock_up(model_table("a", smollm2, context=8192, slots=1), server=KEEP)
    paddock.wait_state("a", "ready")
    wait_committed(paddock)
    record = record_of(paddock)
    body = {"messages": [{"role": "user", "content": "Count."}], "max_tokens": 8000, "ignore_eos": True}
    key = {"Authorization": f"Bearer {record['key']}"}
    url = f"http://127.0.0.1:{record['port']}{CHAT}"
    with httpx.stream(
        "POST", url, json={**body, "stream": True}, headers=key, timeout=60, trust_env=False
    ) as answer:
        pieces = answer.iter_lines()
        assert next(pieces)
        paddock.kill()
        paddock.restart()
        instance = paddock.wait_state("a", "ready")["instances"][0]
        assert (instance["pid"], instance["inflight"]) == (record["pid"], 1)
        assert paddock.api("POST", "/models/a/unload", json={"mode": "drain"}).status_code == 202
        paddock.wait_state("a", "draining")
        for _ in range(20):
            assert next(pieces) is not None
        assert paddock.model("a")["state"] == "draining"
    paddock.wait_state("a", "stopped")
    assert paddock.events(kind="drain")[-1]["data"]["cancelled"] == 0


def test_ctrl_c_tells_open_streams_and_leaves_the_engine(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(tokens=2000, token_interval_s=0.05)
    paddock = paddock_up(engine_table(engine) + model_table("a", tiny_gguf), server=KEEP)
    paddock.wait_state("a", "ready")
    wait_committed(paddock)
    pid = paddock.pids()["a"][0]
    stream = Stream(paddock, "a")
    paddock.wait(lambda: len(stream.pieces) > 2, 20, "the stream to flow")
    assert paddock.stop() == 0
    assert b"shutting_down" in stream.join()
    assert is_alive(pid)
    assert "takes it over" in paddock.log_text()
    paddock.restart()
    assert paddock.pids()["a"] == [pid]
    assert len(engine.starts()) == 1
    # The engine holds nothing that the next manager needs: the events of before are there and go on.
    assert [event["data"]["pid"] for event in paddock.events(kind="kept")] == [pid]
    assert [event["data"]["pid"] for event in events_of_this_life(paddock, "adopted")] == [pid]
    assert paddock.events(kind="storage") == []


def test_a_live_change_of_on_exit_says_what_each_process_will_really_do(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf), server=STOP)
    first = paddock.wait_state("a", "ready")["instances"][0]["pid"]

    def codes() -> list[str]:
        return [reason["code"] for reason in paddock.model("a")["instances"][0]["degradations"]]

    paddock.edit(STOP, KEEP)
    paddock.wait(lambda: codes() == ["ends_with_up"], 20, "the difference to be told")
    assert paddock.command("reload", "a").returncode == 0
    second = paddock.wait_replaced("a", first)
    assert codes() == []
    paddock.edit(KEEP, STOP)
    paddock.wait(lambda: codes() == ["outlives_a_crash"], 20, "the difference to be told")
    assert paddock.stop() == 0
    assert not is_alive(second)


def test_a_second_signal_leaves_what_serves_and_ends_what_loads(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    serving, loading = fake_engine(), fake_engine(load_s=-1.0, ignore_sigterm=True)
    slow = engine_table(loading).replace("default", "slow")
    text = engine_table(serving) + slow + model_table("a", tiny_gguf)
    paddock = paddock_up(text + model_table("b", tiny_gguf, engine="slow"), server=KEEP)
    paddock.wait_state("a", "ready")
    wait_committed(paddock)
    paddock.wait(loading.starts, 20, "the other one to start")
    end_twice(paddock)
    assert is_alive(serving.starts()[0]["pid"])
    paddock.wait(lambda: not is_alive(loading.starts()[0]["pid"]), 20, "the other one to be gone")
    paddock.restart()
    assert len(serving.starts()) == 1
    assert [event["model"] for event in events_of_this_life(paddock, "adopted")] == ["a"]


def test_a_second_signal_takes_along_what_was_to_be_kept_before_on_exit_was_changed(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(ignore_sigterm=True)
    paddock = paddock_up(engine_table(engine) + model_table("a", tiny_gguf), server=KEEP)
    paddock.wait_state("a", "ready")
    paddock.edit(KEEP, STOP)
    paddock.wait(lambda: paddock.model("a")["instances"][0]["degradations"], 20, "the change to be seen")
    end_twice(paddock)
    paddock.wait(lambda: not is_alive(engine.starts()[0]["pid"]), 20, "the engine to be gone")


def end_twice(paddock: RunningPaddock) -> None:
    """Ask for the end, and again before it is there."""
    os.kill(paddock.pid, signal.SIGTERM)
    paddock.wait(lambda: "Ending:" in paddock.log_text(), 10, "the end to begin")
    os.kill(paddock.pid, signal.SIGTERM)
    assert paddock.process.wait(10) == 130


@pytest.mark.engine
def test_what_was_taken_over_saves_its_slots_at_an_unload(paddock_up: StartPaddock, smollm2: Path) -> None:
    paddock = paddock_up(model_table("a", smollm2, context=1024), server=KEEP)
    paddock.wait_state("a", "ready")
    assert chat(paddock, "a").status_code == 200
    wait_committed(paddock)
    before = paddock.pids()
    assert paddock.stop() == 0
    paddock.restart()
    assert paddock.pids() == before
    assert paddock.events(kind="slots_saved") == [], "a process that goes on has its conversations"
    assert paddock.command("unload", "a").returncode == 0
    paddock.wait_state("a", "stopped")
    assert [event["kind"] for event in events_of_this_life(paddock, "slots_saved")] == ["slots_saved"]
    assert paddock.command("load", "a").returncode == 0
    paddock.wait_state("a", "ready")
    assert len(events_of_this_life(paddock, "slots_restored")) == 1


@pytest.mark.engine
def test_slots_of_a_model_file_that_was_changed_meanwhile_are_not_saved(
    paddock_up: StartPaddock, smollm2: Path, tmp_path: Path
) -> None:
    model = tmp_path / "own.gguf"
    shutil.copyfile(smollm2, model)
    paddock = paddock_up(model_table("a", model, context=1024), server=KEEP)
    paddock.wait_state("a", "ready")
    assert chat(paddock, "a").status_code == 200
    wait_committed(paddock)
    paddock.kill()
    os.utime(model, (1e9, 1e9))
    paddock.restart()
    assert paddock.command("unload", "a").returncode == 0
    paddock.wait_state("a", "stopped")
    (event,) = events_of_this_life(paddock, "slots_discarded")
    assert "the content of the model file has changed" in event["message"]


def test_what_is_tied_to_the_manager_ends_with_it_whatever_is_asked_by_now(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf), server=STOP)
    pid = paddock.wait_state("a", "ready")["instances"][0]["pid"]
    assert record_of(paddock)["key"] is None
    paddock.edit(STOP, KEEP)
    paddock.wait(lambda: paddock.model("a")["instances"][0]["degradations"], 20, "the change to be seen")
    assert paddock.stop() == 0
    assert not is_alive(pid)
    assert not record_path(paddock).exists()


def test_a_model_that_was_changed_meanwhile_is_taken_over_and_then_replaced(kept: RunningPaddock) -> None:
    before = kept.pids()["a"]
    kept.kill()
    kept.edit("slots = 2", "slots = 3")
    kept.restart()
    kept.wait(lambda: kept.events(kind="replaced"), 30, "the replacement")
    assert [event["data"]["digest_equal"] for event in kept.events(kind="adopted")] == [False]
    instance = kept.wait_state("a", "ready")["instances"][0]
    assert (instance["generation"], instance["running"]["slots"]) == (2, 3)
    assert instance["pid"] not in before
    assert not is_alive(before[0])


def test_a_model_that_is_no_longer_declared_is_taken_over_and_then_ended(
    kept: RunningPaddock, tiny_gguf: Path
) -> None:
    pid = kept.pids()["a"][0]
    kept.kill()
    kept.edit("[models.a]", "[models.b]")
    kept.restart()
    kept.wait(lambda: not is_alive(pid), 30, "the model that nobody declares to go")
    assert [event["model"] for event in kept.events(kind="adopted")] == ["a"]
    assert kept.events(kind="orphan") == []
    kept.wait_state("b", "ready")


def test_a_live_setting_that_was_changed_meanwhile_costs_no_process(kept: RunningPaddock) -> None:
    before = kept.pids()
    kept.kill()
    kept.edit("slots = 2", 'slots = 2\naliases = ["other"]')
    kept.restart()
    assert kept.pids() == before
    assert chat(kept, "other").status_code == 200


def test_secrets_of_a_model_are_not_kept_and_are_no_difference(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    table = model_table("a", tiny_gguf, environment={"MY_TOKEN": "hush-hush"})
    paddock = paddock_up(engine_table(fake_engine()) + table, server=KEEP)
    paddock.wait_state("a", "ready")
    wait_committed(paddock)
    before = paddock.pids()
    assert b"hush-hush" not in record_path(paddock).read_bytes()
    paddock.kill()
    paddock.restart()
    assert paddock.pids() == before
    assert events_of_this_life(paddock, "applied") == []


def test_with_stop_the_next_manager_ends_what_was_kept(kept: RunningPaddock) -> None:
    before = kept.pids()["a"]
    kept.kill()
    kept.edit(KEEP, STOP)
    kept.restart()
    assert not is_alive(before[0])
    orphan = kept.events(kind="orphan")[0]["data"]
    assert (orphan["pid"], orphan["step"], orphan["verdict"]) == (before[0], "record", "ended")
    assert kept.wait_state("a", "ready")["instances"][0]["pid"] not in before


def test_an_engine_that_was_still_loading_is_started_anew(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(load_s=-1.0)
    paddock = paddock_up(engine_table(engine) + model_table("a", tiny_gguf), server=KEEP)
    paddock.wait(engine.starts, 20, "the start")
    paddock.wait(lambda: record_path(paddock).exists(), 20, "its record")
    paddock.kill()
    engine.rescript()
    paddock.restart()
    assert not is_alive(engine.starts()[0]["pid"])
    assert paddock.events(kind="adopted") == []
    orphan = paddock.events(kind="orphan")[0]
    assert orphan["reason"]["code"] == "not_taken_over"
    assert "it was not ready yet" in orphan["reason"]["message"]
    assert "it was not ready yet" in orphan["message"]
    paddock.wait_state("a", "ready")


def test_a_process_that_was_taken_over_and_dies_is_started_again(kept: RunningPaddock) -> None:
    pid = kept.pids()["a"][0]
    kept.kill()
    kept.restart()
    kept.wait_state("a", "ready")
    os.kill(pid, signal.SIGKILL)
    kept.wait(lambda: kept.pids().get("a", [pid]) != [pid], 20, "another process")
    kept.wait_state("a", "ready")
    assert "unknown exit code" in kept.events(kind="exited")[0]["message"]
    assert not record_path(kept).exists()
    wait_committed(kept, "a.0@2")


def test_unloading_what_was_taken_over_ends_it(kept: RunningPaddock) -> None:
    pid = kept.pids()["a"][0]
    kept.kill()
    kept.restart()
    assert kept.command("unload", "a").returncode == 0
    kept.wait_state("a", "stopped")
    assert not is_alive(pid)
    assert list((kept.state_dir / "instances").iterdir()) == []


def test_what_was_taken_over_and_then_stopped_is_told_to_go_on_and_to_end(kept: RunningPaddock) -> None:
    pid = kept.pids()["a"][0]
    kept.kill()
    kept.restart()
    kept.wait_state("a", "ready")
    os.kill(pid, signal.SIGSTOP)
    assert kept.command("unload", "a").returncode == 0
    kept.wait_state("a", "stopped")
    assert events_of_this_life(kept, "stopped")[-1]["data"]["signals"] == ["SIGTERM"]
    assert not is_alive(pid)


def test_what_was_taken_over_and_hangs_is_ended_and_started_again(kept: RunningPaddock) -> None:
    pid = kept.pids()["a"][0]
    kept.kill()
    kept.restart()
    kept.wait_state("a", "ready")
    os.kill(pid, signal.SIGSTOP)
    kept.wait(lambda: events_of_this_life(kept, "exited"), 120, "the process to be ended")
    assert events_of_this_life(kept, "exited")[0]["reason"]["code"] == "engine_hung"
    kept.wait(lambda: kept.pids().get("a", [pid]) != [pid], 20, "another process")
    kept.wait_state("a", "ready")
    assert not is_alive(pid)


def test_a_wrapper_that_does_not_exec_is_kept_with_its_engine(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    engine, wrapper = fake_engine(), tmp_path / "wrapped"
    wrapper.write_text(f'#!/bin/sh\n"{engine.path}" "$@"\n')
    wrapper.chmod(0o755)
    paddock = paddock_up(engine_table(wrapper) + model_table("a", tiny_gguf), server=KEEP)
    paddock.wait_state("a", "ready")
    wait_committed(paddock)
    before = paddock.pids()
    paddock.kill()
    paddock.restart()
    assert paddock.pids() == before
    assert chat(paddock, "a").status_code == 200
    assert paddock.command("unload", "a").returncode == 0
    paddock.wait(lambda: not is_alive(engine.starts()[0]["pid"]), 20, "the engine to go")


def test_doctor_names_engines_that_were_kept_and_bench_refuses_beside_them(kept: RunningPaddock) -> None:
    pid = kept.pids()["a"][0]
    assert "still run" not in kept.command("doctor").stdout
    kept.stop()
    assert f"still run: process {pid}" in kept.command("doctor").stdout
    refused = kept.command("bench", "a")
    assert refused.returncode != 0
    assert str(pid) in refused.stderr
    assert is_alive(pid)


def test_two_replicas_are_both_taken_over(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine: FakeEngine = fake_engine()
    paddock = paddock_up(engine_table(engine) + model_table("a", tiny_gguf, replicas=2), server=KEEP)
    paddock.wait(lambda: len(paddock.pids().get("a", [])) == 2, 20, "two processes")
    for number in range(2):
        paddock.wait(lambda n=number: record_path(paddock, f"a.{n}@1").exists(), 20, "a record")
        wait_committed(paddock, f"a.{number}@1")
    before = sorted(paddock.pids()["a"])
    paddock.kill()
    paddock.edit("replicas = 2", "replicas = 1")
    paddock.restart()
    assert len(paddock.events(kind="adopted")) == 2
    paddock.wait(lambda: len(paddock.pids()["a"]) == 1, 20, "one replica to go")
    assert paddock.pids()["a"][0] in before
    assert len(engine.starts()) == 2
