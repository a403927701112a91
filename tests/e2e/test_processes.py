"""Processes from the outside: nothing survives, nothing is started twice, nothing foreign is touched (07)."""

from __future__ import annotations

import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import Stream, chat, engine_table, error_of, model_table
from tests.support.fakes import FakeEngine
from tests.support.paddock import run_command


@pytest.mark.engine
def test_killing_the_manager_leaves_no_engine_behind(paddock_up: StartPaddock, smollm2: Path) -> None:
    paddock = paddock_up(model_table("a", smollm2) + model_table("b", smollm2))
    for name in "ab":
        paddock.wait_state(name, "ready")
    assert len(paddock.pids()) == 2
    paddock.kill()
    paddock.wait(lambda: not paddock.survivors(), 20, "the engines to go")
    paddock.restart()
    paddock.wait_state("a", "ready")


def test_ctrl_c_ends_everything_and_tells_open_streams(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(
        engine_table(fake_engine(tokens=2000, token_interval_s=0.05)) + model_table("a", tiny_gguf)
    )
    paddock.wait_state("a", "ready")
    stream = Stream(paddock, "a")
    paddock.wait(lambda: len(stream.pieces) > 2, 20, "the stream to flow")
    assert paddock.stop() == 0
    assert b"shutting_down" in stream.join()
    assert paddock.survivors() == []
    assert not (paddock.state_dir / "token").exists()


def test_a_second_manager_on_the_same_state_does_not_start(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf, load="manual"))
    second = paddock.command("up")
    assert second.returncode != 0
    assert str(paddock.pid) in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1


def test_a_port_in_use_is_one_sentence(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path, clean_env: dict[str, str]
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf, load="manual"))
    other = {**clean_env, "PADDOCK_STATE_DIR": str(paddock.state_dir.parent / "other-state")}
    second = run_command("up", "--manifest", str(paddock.manifest), environment=other)
    assert second.returncode == 1
    assert "server.listen" in second.stderr
    assert "in use" in second.stderr
    assert "Traceback" not in second.stderr
    assert chat(paddock, "a").status_code == 503


def test_twenty_first_requests_start_one_engine(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(load_s=1.0)
    paddock = paddock_up(engine_table(engine) + model_table("a", tiny_gguf, load="on-demand", max_queue=32))
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: chat(paddock, "a").status_code, range(20)))
    assert answers == [200] * 20
    assert len(engine.starts()) == 1


@pytest.mark.parametrize("port_outlives_s", [0.0, 0.03])
def test_a_crash_in_a_request_is_answered_and_the_next_one_succeeds(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path, port_outlives_s: float
) -> None:
    engine = fake_engine(die_at_request=3, first_token_s=0.1, port_outlives_s=port_outlives_s)
    paddock = paddock_up(engine_table(engine) + model_table("a", tiny_gguf))
    paddock.wait_state("a", "ready")
    assert [chat(paddock, "a").status_code for _ in range(4)] == [200] * 4
    assert paddock.model("a")["instances"][0]["restarts"] == 1


def test_a_stream_that_has_begun_is_told_of_the_crash_and_never_replayed(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(tokens=400, token_interval_s=0.05)
    paddock = paddock_up(engine_table(engine) + model_table("a", tiny_gguf))
    paddock.wait_state("a", "ready")
    stream = Stream(paddock, "a")
    paddock.wait(lambda: len(stream.pieces) > 2, 20, "the stream to flow")
    os.kill(paddock.pids()["a"][0], signal.SIGKILL)
    raw = stream.join()
    assert raw.count(b"data: [DONE]") == 1
    assert b"stream_interrupted" in raw
    assert len(engine.requests()) == 1


def test_unload_by_command_answers_that_it_was_unloaded_and_load_brings_it_back(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf))
    paddock.wait_state("a", "ready")
    assert paddock.command("unload", "a").returncode == 0
    answer = chat(paddock, "a")
    assert (answer.status_code, error_of(answer)["code"]) == (503, "model_not_loaded")
    assert paddock.command("load", "a").returncode == 0
    assert chat(paddock, "a").status_code == 200


def test_an_idle_model_unloads_and_a_request_brings_it_back(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    paddock = paddock_up(
        engine_table(engine) + model_table("a", tiny_gguf, load="on-demand", unload_after="1s")
    )
    assert chat(paddock, "a").status_code == 200
    paddock.wait_state("a", "stopped")
    assert chat(paddock, "a").status_code == 200
    assert len(engine.starts()) == 2


def test_false_words_load_nothing(paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path) -> None:
    engine = fake_engine()
    tables = "".join(model_table(f"m{number}", tiny_gguf, load="manual") for number in range(5))
    paddock = paddock_up(engine_table(engine) + tables)
    assert paddock.pids() == {}
    assert chat(paddock, "m0").status_code == 503
    assert engine.starts() == []


def test_a_stranger_that_holds_a_port_is_left_alone(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        paddock = paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf))
        entry = paddock.wait_state("a", "ready")
        assert entry["instances"][0]["port"] != stranger.getsockname()[1]


def test_old_and_new_builds_get_the_spelling_they_know(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    old, new = fake_engine(help="old"), fake_engine(help="new")
    policy = '[speculation.default]\nmode = "ngram"\n'
    paddock = paddock_up(engine_table(old) + policy + model_table("a", tiny_gguf, speculation="default"))
    paddock.wait_state("a", "ready")
    paddock.edit(str(old.path), str(new.path))
    paddock.wait(lambda: new.starts(), 20, "the new build to be started")
    paddock.wait_state("a", "ready")
    assert "--draft-max" in old.starts()[-1]["argv"]
    assert "--spec-ngram-mod-n-max" in new.starts()[-1]["argv"]


def wrapped(engine: FakeEngine, folder: Path) -> Path:
    """A script that runs the engine as its child, as people write them around an engine."""
    wrapper = folder / "wrapped"
    wrapper.write_text(f'#!/bin/sh\n"{engine.path}" "$@"\n')
    wrapper.chmod(0o755)
    return wrapper


def test_a_wrapper_without_exec_leaves_no_engine_to_the_next_life(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    engine = fake_engine()
    wrapper = wrapped(engine, tmp_path)
    paddock = paddock_up(engine_table(wrapper) + model_table("a", tiny_gguf))
    paddock.wait_state("a", "ready")
    left = engine.starts()[0]["pid"]
    paddock.kill()
    paddock.restart()
    paddock.wait(lambda: not Path(f"/proc/{left}").exists(), 20, "the engine of the earlier life to go")
    assert paddock.events(kind="orphan")
    paddock.wait_state("a", "ready")


def test_unloading_a_wrapped_engine_ends_the_engine_too(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    engine = fake_engine()
    wrapper = wrapped(engine, tmp_path)
    paddock = paddock_up(engine_table(wrapper) + model_table("a", tiny_gguf))
    paddock.wait_state("a", "ready")
    assert paddock.command("unload", "a").returncode == 0
    paddock.wait(lambda: not Path(f"/proc/{engine.starts()[0]['pid']}").exists(), 20, "the engine to go")
