"""The fake engine itself: what it says when healthy, and that each fault shows."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.conftest import MakeFake
from tests.fake_engine.command_line import known_flags
from tests.support.fake_children import CHAT, HEADERS, Child, Launch
from tests.support.fakes import FakeEngine
from tests.support.waiting import wait_until


def run(engine: FakeEngine, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([engine.path, *arguments], capture_output=True, text=True, check=False, timeout=10)


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


def test_a_healthy_start_prints_the_lines_of_the_real_build(launch: Launch) -> None:
    child = launch()
    child.process.terminate()
    status, errors = child.finish()
    assert status == 0
    for text in (
        "loading model '",
        "initializing, n_slots = 2",
        "model loaded",
        "listening on http://127.0.0.1:",
    ):
        assert text in errors


def test_loading_answers_503_even_without_a_key(launch: Launch) -> None:
    child = launch(load_s=-1, healthy=False)
    wait_until(lambda: child.health() == 503, what="a loading fake engine")
    assert child.call("GET", "/slots").json()["error"]["message"] == "Loading model"


def test_everything_but_health_and_models_needs_the_key(launch: Launch) -> None:
    child = launch()
    assert child.call("GET", "/health").status_code == 200
    assert child.call("GET", "/slots").status_code == 401
    assert child.get("/slots").status_code == 200


def test_a_context_is_split_over_slots_unless_unified(launch: Launch) -> None:
    split, unified = launch("-c", "4096"), launch("-c", "4096", "--kv-unified")
    settings = [child.get("/props").json()["default_generation_settings"] for child in (split, unified)]
    assert [setting["n_ctx"] for setting in settings] == [2048, 4096]


def test_a_stream_counts_its_tokens_and_ends_with_done(launch: Launch) -> None:
    child = launch(tokens=3)
    answer = child.chat(stream=True, stream_options={"include_usage": True})
    chunks = events(answer.text)
    assert [c["choices"][0]["delta"].get("content") for c in chunks if c["choices"]] == [
        "t0 ",
        "t1 ",
        "t2 ",
        None,
    ]
    assert chunks[-1]["usage"]["completion_tokens"] == 3
    assert answer.text.endswith("data: [DONE]\n\n")


def test_max_tokens_limits_an_answer(launch: Launch) -> None:
    choice = launch().chat(max_tokens=2).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("t0 t1 ", "length")


def test_a_client_that_leaves_frees_its_slot(launch: Launch) -> None:
    child = launch(tokens=1000, token_interval_s=0.05)
    url = f"http://127.0.0.1:{child.port}/v1/chat/completions"
    with httpx.stream("POST", url, headers=HEADERS, json={**CHAT, "stream": True}) as stream:
        lines = stream.iter_lines()
        next(lines)
        assert any(slot["is_processing"] for slot in child.get("/slots").json())
    wait_until(
        lambda: not any(slot["is_processing"] for slot in child.get("/slots").json()), what="a free slot"
    )


def test_what_arrives_is_recorded(fake_engine: MakeFake, tiny_gguf: Path) -> None:
    engine = fake_engine()
    child = Child(engine, tiny_gguf, "--alias", "tiny")
    child.wait_healthy()
    child.chat(temperature=0)
    child.process.kill()
    child.finish()
    assert engine.starts()[0]["argv"][-2:] == ["--alias", "tiny"]
    assert engine.requests()[0]["body"] == {**CHAT, "temperature": 0}


def test_an_unknown_flag_is_refused_as_the_real_parser_does(fake_engine: MakeFake) -> None:
    finished = run(fake_engine(), "-m", "x", "--nonsense")
    assert (finished.returncode, finished.stderr) == (1, "error: invalid argument: --nonsense\n")


def test_a_build_can_be_told_not_to_know_a_flag(fake_engine: MakeFake) -> None:
    finished = run(fake_engine(reject_flags=["--fit-target"]), "-m", "x", "--fit-target", "512")
    assert finished.stderr == "error: invalid argument: --fit-target\n"


def test_a_removal_stub_names_its_replacement(fake_engine: MakeFake) -> None:
    finished = run(fake_engine(), "--draft-max", "3")
    assert finished.returncode == 1
    assert finished.stderr.startswith(
        'error while handling argument "--draft-max": the argument has been removed. '
        "use --spec-draft-n-max or --spec-ngram-mod-n-max\n"
    )


def test_a_flag_without_its_value_is_refused(fake_engine: MakeFake) -> None:
    assert 'handling argument "-c": expected value' in run(fake_engine(), "-m", "x", "-c").stderr


def test_a_file_that_is_no_gguf_ends_the_start(launch: Launch, tmp_path: Path) -> None:
    text = tmp_path / "notes.gguf"
    text.write_text("hello")
    status, errors = launch(model=text, healthy=False).finish()
    assert status == 1
    assert "invalid magic characters" in errors


@pytest.mark.parametrize(
    ("script", "status"),
    [
        pytest.param({"exit_code": 3}, 3, id="exit status"),
        pytest.param({"exit_signal": "SIGILL"}, -signal.SIGILL, id="illegal instruction"),
        pytest.param({"exit_code": 1, "exit_after_s": 0.1}, 1, id="after a while"),
    ],
)
def test_it_dies_as_told(launch: Launch, script: dict[str, Any], status: int) -> None:
    ended, errors = launch(healthy=False, stderr=["the last words"], **script).finish()
    assert (ended, "the last words" in errors) == (status, True)


def test_only_the_first_starts_are_faulty(fake_engine: MakeFake, tiny_gguf: Path) -> None:
    engine = fake_engine(exit_code=1, faulty_starts=1)
    assert Child(engine, tiny_gguf).finish()[0] == 1
    second = Child(engine, tiny_gguf)
    second.wait_healthy()
    second.process.terminate()
    assert second.finish()[0] == 0


def test_deaf_to_sigterm(launch: Launch) -> None:
    child = launch(ignore_sigterm=True)
    child.process.terminate()
    assert child.health() == 200


def test_a_stranger_names_another_model(launch: Launch) -> None:
    assert launch(model_path="/other.gguf").get("/props").json()["model_path"] == "/other.gguf"


def test_it_dies_in_the_middle_of_a_request(launch: Launch) -> None:
    child = launch(die_at_request=2)
    assert child.chat().status_code == 200
    with pytest.raises(httpx.TransportError):
        child.chat()
    assert child.finish()[0] == -signal.SIGKILL


def test_a_cut_stream_has_no_end(launch: Launch) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        launch(cut_at_token=2).chat(stream=True)


def test_a_grandchild_keeps_the_port(launch: Launch) -> None:
    child = launch(grandchild=True)
    (grandchild,) = psutil.Process(child.process.pid).children()
    try:
        child.process.kill()
        child.process.wait()
        assert grandchild.is_running()
    finally:
        grandchild.kill()


def test_devices_are_listed_below_the_heading(fake_engine: MakeFake) -> None:
    device = "Vulkan0: llvmpipe (2048 MiB, 2048 MiB free)"
    assert run(fake_engine(devices=[device]), "--list-devices").stdout == f"Available devices:\n  {device}\n"


def test_the_old_help_knows_draft_max_and_no_spec_default() -> None:
    old, new = known_flags("old"), known_flags("new")
    assert {"--draft-max", "--model-draft", "--metrics"} <= old.keys()
    assert "--spec-default" not in old
    assert new["--spec-default"].takes_value is False


@pytest.mark.parametrize(
    "flag", ["-m", "-fa", "-lv", "--ctx-size", "--override-tensor", "--chat-template-kwargs"]
)
def test_flags_that_take_a_value(flag: str) -> None:
    assert known_flags("new")[flag].takes_value


@pytest.mark.parametrize("flag", ["--jinja", "--metrics", "--kv-unified", "--no-context-shift"])
def test_flags_that_take_none(flag: str) -> None:
    assert not known_flags("new")[flag].takes_value


def test_a_misspelt_fault_is_an_error(fake_engine: MakeFake) -> None:
    with pytest.raises(ValueError, match="no such fault: lod_s"):
        fake_engine(lod_s=1)
