"""The wheel's llama-server and the native engine on the same model, to be asked the same things."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.waiting import unused_port
from tools.fetch import ROOT

START_TIMEOUT_S = 90.0
END_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 110.0
POLL_S = 0.005


@dataclass(frozen=True)
class RunningServer:
    """A server that is ready. `started_s`: seconds from spawn to ready."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    started_s: float

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """An answer, whatever its status."""
        return httpx.post(f"{self.url}{path}", json=body, timeout=ANSWER_TIMEOUT_S)

    def get(self, path: str) -> httpx.Response:
        """An answer, whatever its status."""
        return httpx.get(f"{self.url}{path}", timeout=ANSWER_TIMEOUT_S)

    def stream(self, path: str, body: dict[str, Any]) -> tuple[list[Any], bool]:
        """Data of the events of a streamed answer, and whether `[DONE]` was the last."""
        events, is_done = [], False
        body = {**body, "stream": True}
        with httpx.stream("POST", f"{self.url}{path}", json=body, timeout=ANSWER_TIMEOUT_S) as answer:
            assert answer.status_code == httpx.codes.OK, answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    assert not is_done, f"behind [DONE]: {line}"
                    is_done = line == "data: [DONE]"
                    events += [] if is_done else [json.loads(line[6:])]
        return events, is_done


@dataclass(frozen=True)
class EnginePair:
    """Both servers, with the same model and arguments."""

    real: RunningServer
    native: RunningServer

    def post(self, path: str, body: dict[str, Any]) -> tuple[Any, Any]:
        """The answers to one request, of the real one first; both good."""
        answers = [server.post(path, body) for server in (self.real, self.native)]
        codes = [answer.status_code for answer in answers]
        assert codes == [httpx.codes.OK] * 2, [answer.text for answer in answers]
        return answers[0].json(), answers[1].json()

    def get(self, path: str) -> tuple[Any, Any]:
        """The answers, of the real one first; both good."""
        answers = [server.get(path) for server in (self.real, self.native)]
        codes = [answer.status_code for answer in answers]
        assert codes == [httpx.codes.OK] * 2, [answer.text for answer in answers]
        return answers[0].json(), answers[1].json()

    def stream(self, path: str, body: dict[str, Any]) -> tuple[list[Any], list[Any], tuple[bool, bool]]:
        """The events of both, and whether each ended with `[DONE]`."""
        (real, is_real_done), (native, is_native_done) = (
            server.stream(path, body) for server in (self.real, self.native)
        )
        return real, native, (is_real_done, is_native_done)


def llama_server_line(binary: Path) -> tuple[list[str], dict[str, str]]:
    """Command and environment of the real llama-server, on the CPU."""
    return [str(binary), "--device", "none"], {**os.environ, "LD_LIBRARY_PATH": str(binary.parent)}


def native_line() -> tuple[list[str], dict[str, str]]:
    """Command and environment of the native engine, on the CPU."""
    line = [sys.executable, "-m", "framework.nativeserver", "--device", "none"]
    return line, {**os.environ, "PYTHONPATH": str(ROOT)}


@contextmanager
def running_server(
    started: tuple[list[str], dict[str, str]], model: Path, log: Path, *arguments: str
) -> Iterator[RunningServer]:
    """A server on a free port of this machine, until the end of the block."""
    line, environment = started
    port = unused_port()
    argv = [*line, "-m", str(model), "--host", "127.0.0.1", "--port", str(port), *arguments]
    begun = time.monotonic()
    with (
        log.open("wb") as output,
        subprocess.Popen(argv, env=environment, stdout=output, stderr=output) as process,
    ):
        url = f"http://127.0.0.1:{port}"
        try:
            _wait(url, process, log)
            yield RunningServer(url, process, log, time.monotonic() - begun)
        finally:
            process.terminate()
            try:
                process.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def running_pair(binary: Path, model: Path, logs: Path, *arguments: str) -> Iterator[EnginePair]:
    """Both servers, one thread each, until the end of the block. `logs`: a folder for what they say."""
    arguments = ("-t", "1", "--no-warmup", *arguments)
    with (
        running_server(llama_server_line(binary), model, logs / "real", *arguments) as real,
        running_server(native_line(), model, logs / "native", *arguments) as native,
    ):
        yield EnginePair(real, native)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/health", timeout=1).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            pass
        time.sleep(POLL_S)
    raise AssertionError(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")
