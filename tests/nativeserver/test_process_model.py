"""The life of the process over the real core and a real model (12 §1.3-1.7)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.support.engine_pair import native_line, running_server

pytestmark = [pytest.mark.engine, pytest.mark.timeout(200)]

ARGUMENTS = ("-c", "1024", "-np", "2", "-t", "1")
# An end takes 5 s at most where the machine does nothing else.
END_S = 30


def failed_start(*arguments: str) -> tuple[int, str]:
    """Exit status and last line."""
    line, environment = native_line()
    done = subprocess.run(
        [*line, "--port", "0", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()[-1]


def test_a_missing_file_is_named_in_the_last_line() -> None:
    status, last = failed_start("-m", "/no/such.gguf")
    assert status == 1
    assert last.startswith("error: load failed [model-open]: ")
    assert "/no/such.gguf" in last


def test_a_pipe_is_no_model_no_adapter_and_no_draft_model(smollm2: Path, tmp_path: Path) -> None:
    pipe = str(tmp_path / "pipe.gguf")
    os.mkfifo(pipe)
    drafting = ("--spec-type", "draft-simple", "--spec-strict")
    for arguments in (
        ("-m", pipe),
        ("-m", str(smollm2), "--lora", pipe),
        ("-m", str(smollm2), "-md", pipe, *drafting),
    ):
        status, last = failed_start(*arguments)
        assert status == 1
        assert f"'{pipe}': it is not a regular file" in last


def test_a_model_without_layers_fails_the_load(smollm2: Path) -> None:
    status, last = failed_start("-m", str(smollm2), "--override-kv", "llama.block_count=int:0")
    assert status == 1
    assert last.startswith("error: load failed [model-load]: ")
    assert "llama.block_count of 0; 1 to 512 are allowed" in last


def test_a_device_that_is_not_there_fails_the_load(smollm2: Path) -> None:
    status, last = failed_start("-m", str(smollm2), "--device", "Foo0")
    assert status == 1
    assert last.startswith("error: load failed [params]: ")
    assert "Foo0" in last


def test_a_signal_ends_a_stream_with_an_error_and_the_process_with_0(smollm2: Path, tmp_path: Path) -> None:
    with running_server(native_line(), smollm2, tmp_path / "log", *ARGUMENTS) as server:
        assert "server is listening on http://127.0.0.1:" in server.log.read_text()
        assert "model loaded" in server.log.read_text()
        body = {"prompt": "Once upon a time", "n_predict": 400, "ignore_eos": True, "stream": True}
        events = []
        with httpx.stream("POST", f"{server.url}/completion", json=body, timeout=60) as answer:
            for text in answer.iter_lines():
                if not text.startswith("data: "):
                    continue
                events.append(json.loads(text.removeprefix("data: ")))
                if len(events) == 3:
                    server.process.terminate()
        assert server.process.wait(END_S) == 0
    assert events[-1]["error"]["type"] == "unavailable_error"
    assert len(events) < 400


def test_texts_that_are_tokenised_do_not_hold_up_the_end(smollm2: Path, tmp_path: Path) -> None:
    spaces = {"content": " " * (3 * 2**20)}
    with running_server(native_line(), smollm2, tmp_path / "log", *ARGUMENTS) as server:
        for _ in range(8):
            with contextlib.suppress(httpx.TimeoutException):
                httpx.post(f"{server.url}/tokenize", json=spaces, timeout=0.5)
        body = {"prompt": "Once upon a time", "n_predict": 400, "ignore_eos": True, "stream": True}
        events = []
        with httpx.stream("POST", f"{server.url}/completion", json=body, timeout=60) as answer:
            for text in answer.iter_lines():
                if text.startswith("data: "):
                    events.append(json.loads(text.removeprefix("data: ")))
                    if len(events) == 1:
                        server.process.terminate()
        assert server.process.wait(END_S) == 0
    assert events[-1]["error"]["type"] == "unavailable_error"


def test_a_signal_ends_a_load(smollm2: Path) -> None:
    line, environment = native_line()
    with subprocess.Popen(
        [*line, "--port", "0", "-m", str(smollm2)], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for text in process.stderr:
            if "loading model" in text:
                break
        process.terminate()
        rest = process.stderr.read()
        assert process.wait(END_S) == 0
    assert "Traceback" not in rest
