"""One run of the server, from its arguments to its exit status (12 §1), over a core that obeys the test."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.nativeserver.scripted_core import SCRIPT
from tests.support.sized_models import write_large_model
from tests.support.waiting import unused_port, wait_until
from tools.fetch import ROOT

MODEL = ("-m", str(Path(__file__).with_name("no_weights.gguf")))
"""A file that begins as a model does; the core here reads none."""
LONG_S = 60.0


def environment(script: dict[str, Any]) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, SCRIPT: json.dumps(script)}


def line(*argv: str) -> list[str]:
    return [sys.executable, "-m", "tests.nativeserver.scripted_core", *argv]


def ended(*argv: str, **script: Any) -> subprocess.CompletedProcess[str]:
    """A run that ends by itself."""
    return subprocess.run(
        line(*argv), env=environment(script), capture_output=True, text=True, timeout=30, check=False
    )


class Run:
    """A server that is up."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process, self.port, self.log = process, port, log

    @property
    def text(self) -> str:
        return self.log.read_text()

    def health(self) -> int:
        """Status of /health; 0 while nobody answers."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/health", timeout=5).status_code
        except httpx.HTTPError:
            return 0

    def signalled(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Exit status. Fails where the end takes half as long as what it could wait for."""
        self.process.send_signal(number)
        return self.process.wait(LONG_S / 2)


@contextmanager
def running(tmp_path: Path, *argv: str, **script: Any) -> Iterator[Run]:
    """A server on a free port."""
    port, log = unused_port(), tmp_path / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            line(*MODEL, "--port", str(port), *argv), env=environment(script), stdout=output, stderr=output
        ) as process,
    ):
        try:
            yield Run(process, port, log)
        finally:
            process.kill()


def test_a_bad_line_ends_with_status_1_and_its_text_last() -> None:
    done = ended("--nonsense")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == "error: invalid argument: --nonsense; --help lists the flags"


def test_devices_are_listed_as_llama_server_lists_them() -> None:
    done = ended("--list-devices")
    assert done.returncode == 0
    assert done.stdout == "Available devices:\n  Vulkan0: A card, (big) (3072 MiB, 2048 MiB free)\n"


def test_a_failed_load_is_told_in_the_last_line() -> None:
    done = ended(*MODEL, "--port", "0", error=["model-load", "failed to load model 'a.gguf'"])
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == ("error: load failed [model-load]: failed to load model 'a.gguf'")


def test_a_missing_core_is_a_failed_load_too() -> None:
    done = ended(*MODEL, "--port", "0", missing="libllama is not there")
    assert done.returncode == 1
    assert "error: load failed [library]: " in done.stderr.splitlines()[-1]
    assert "libllama is not there" in done.stderr.splitlines()[-1]


def test_a_template_that_cannot_be_read_is_a_failed_load_with_a_way_out() -> None:
    done = ended(*MODEL, "--port", "0", template="{% if %}")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: load failed [template]: ")
    assert "--no-jinja" in last
    assert "chatml" in last


def test_a_projector_is_refused_before_anything_is_loaded() -> None:
    done = ended(*MODEL, "--port", "0", "--mmproj", "/p.gguf", load_s=LONG_S)
    assert done.returncode == 1
    assert "load failed [mmproj]" in done.stderr.splitlines()[-1]


def test_a_taken_port_ends_the_start_before_loading() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = ended(*MODEL, "--port", str(port), load_s=LONG_S)
    assert done.returncode == 1
    assert f"couldn't bind HTTP server socket, hostname: 127.0.0.1, port: {port}" in done.stderr
    # Who holds it, and the way out.
    assert f"process {os.getpid()} (" in done.stderr
    assert "--port" in done.stderr


def test_an_address_of_another_machine_ends_the_start_with_a_way_out() -> None:
    done = ended(*MODEL, "--host", "192.0.2.1", "--port", "0", load_s=LONG_S)
    assert done.returncode == 1
    assert "such as 127.0.0.1" in done.stderr


def test_a_model_that_is_not_there_ends_the_start_before_it_listens() -> None:
    done = ended("-m", "/no/such.gguf", "--port", "0", missing="no core either")
    assert done.returncode == 1
    assert done.stderr == (
        "error: load failed [model-open]: cannot open model '/no/such.gguf': there is no such file\n"
    )


def test_a_context_that_no_memory_holds_is_not_tried(tmp_path: Path) -> None:
    model = str(write_large_model(tmp_path / "large.gguf"))
    done = ended("-m", model, "-c", "2000000000", "-ngl", "0", "--port", "0", load_s=LONG_S)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: load failed [context]: the KV cache of --ctx-size 2000000000 takes ")
    assert "make --ctx-size smaller" in last


def test_a_context_that_the_library_cannot_have_has_a_way_out() -> None:
    cause = "failed to create llama_context with n_ctx 9: failed to allocate buffer for kv cache"
    done = ended(*MODEL, "--port", "0", error=["context", cause])
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"error: load failed [context]: {cause}; make --ctx-size smaller")


def test_a_refused_drafter_names_the_flag_that_would_bring_one() -> None:
    done = ended(*MODEL, "--port", "0", error=["draft-file-missing", "no draft model was given"])
    assert "--model-draft" in done.stderr.splitlines()[-1]


def test_broken_certificates_end_the_start_before_loading(tmp_path: Path) -> None:
    file = tmp_path / "x.pem"
    file.write_text("no certificate")
    done = ended(*MODEL, "--port", "0", "--ssl-key-file", str(file), "--ssl-cert-file", str(file))
    assert done.returncode == 1
    assert "--ssl-cert-file" in done.stderr


def test_a_lost_device_ends_the_process_with_status_3() -> None:
    done = ended(*MODEL, "--port", "0", fails_after_s=0.1)
    assert done.returncode == 3


def test_it_answers_503_while_it_loads_and_200_then(tmp_path: Path) -> None:
    loaded = tmp_path / "loaded"
    with running(tmp_path, loads_until=str(loaded)) as server:
        assert wait_until(server.health, what="an answer") == 503
        assert "model loaded" not in server.text
        loaded.touch()
        wait_until(lambda: server.health() == 200, what="a loaded model")
        assert f"server is listening on http://127.0.0.1:{server.port}" in server.text
        wait_until(lambda: "model loaded" in server.text, what="the line")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_0(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path) as server:
        wait_until(lambda: server.health() == 200, what="a loaded model")
        status = server.signalled(number)
    assert status == 0


@pytest.mark.parametrize("script", [{}, {"deaf": True}], ids=["heard", "not-heard"])
def test_a_signal_ends_it_while_it_loads(tmp_path: Path, script: dict[str, Any]) -> None:
    with running(tmp_path, load_s=LONG_S, **script) as server:
        wait_until(lambda: server.health() == 503, what="an answer")
        status = server.signalled()
    assert status == 0


def test_an_engine_that_does_not_end_keeps_nobody_waiting(tmp_path: Path) -> None:
    with running(tmp_path, ends_s=LONG_S) as server:
        wait_until(lambda: server.health() == 200, what="a loaded model")
        status = server.signalled()
    assert status == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with running(tmp_path, ends_s=LONG_S) as server:
        wait_until(lambda: server.health() == 200, what="a loaded model")
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "ending on a signal" in server.text, what="the first signal")
        status = server.signalled(signal.SIGINT)
    assert status == 130


def test_an_idle_connection_does_not_keep_it(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        wait_until(lambda: server.health() == 200, what="a loaded model")
        with httpx.Client() as client:
            client.get(f"http://127.0.0.1:{server.port}/health")
            status = server.signalled()
    assert status == 0


def test_a_log_file_gets_every_line_too(tmp_path: Path) -> None:
    file = tmp_path / "engine.log"
    done = ended(*MODEL, "--port", "0", "--log-file", str(file), error=["warmup", "code 2"])
    assert done.returncode == 1
    assert file.read_text() == done.stderr
    assert file.read_text().endswith("error: load failed [warmup]: code 2\n")


def test_lines_are_json_on_demand() -> None:
    done = ended(*MODEL, "--port", "0", "--log-jsonl", "--threads-http", "3", error=["warmup", "code 2"])
    lines = [json.loads(text) for text in done.stderr.splitlines()]
    assert lines[0]["level"] == "W"
    assert lines[0]["text"].startswith("--threads-http has no effect here")
    assert lines[-1]["text"] == "error: load failed [warmup]: code 2"


def test_a_disabled_log_leaves_the_reason_of_the_end() -> None:
    done = ended(*MODEL, "--port", "0", "--log-disable", error=["warmup", "code 2"])
    assert done.stderr == "error: load failed [warmup]: code 2\n"


def test_lines_have_time_level_and_source() -> None:
    done = ended(*MODEL, "--port", "0", error=["warmup", "code 2"])
    first = done.stderr.splitlines()[0]
    time_text, level, tag = first.split()[:3]
    assert (level, tag) == ("W", "srv")
    assert [len(part) for part in time_text.split(".")][1:] == [2, 3, 3]


def test_a_unix_socket_serves_and_goes(tmp_path: Path) -> None:
    path = tmp_path / "engine.sock"
    with running(tmp_path, "--host", str(path)) as server:
        wait_until(lambda: "model loaded" in server.text, what="a loaded model")
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
            assert client.get("http://engine/health").status_code == 200
        assert server.signalled() == 0
    assert not path.exists()
