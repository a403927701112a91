"""The proxies that `bench.proxy_speed` compares, started and ended as processes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from bench.http_load import Target
from tests.support.model_files import write_tiny_gguf
from tests.support.paddock import start_paddock
from tests.support.waiting import unused_port, wait_until
from tools.fetch import ROOT

START_S = 60.0
END_S = 10.0
SHOWN = 2000
MODEL = "bench-model"
ALIAS = "gpt-bench"
KEY = "sk-bench-0123456789abcdef0123456789abcdef"
TABLES = """
[access.bench]
key = "env:BENCH_KEY"
models = ["*"]

[engines.default]
binary = "{engine}"

[models.{model}]
source = "{source}"
aliases = ["{alias}"]
load = "at-start"
"""
LITELLM = """
model_list:
  - model_name: {model}
    litellm_params:
      model: openai/{model}
      api_base: http://127.0.0.1:{port}/v1
      api_key: none
litellm_settings:
  telemetry: false
"""


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the block, nor do its children."""
    try:
        yield process
    finally:
        family = [*psutil.Process(process.pid).children(recursive=True)] if process.poll() is None else []
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_S)
        for child in family:
            if child.is_running():
                child.kill()


def answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server answers at all."""

    def try_it() -> bool:
        if process.poll() is not None:
            raise SystemExit(
                f"{url} ended with {process.returncode}:\n{log.read_text(errors='replace')[-2000:]}"
            )
        try:
            httpx.get(url, timeout=2.0, trust_env=False)
        except httpx.TransportError:
            return False
        return True

    wait_until(try_it, START_S, url)


@contextmanager
def spawned(
    argv: list[str], log: Path, url: str, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that answers at `url`."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
        )
    with ended(process):
        answers(url, process, log)
        yield process


@contextmanager
def direct(folder: Path) -> Iterator[Target]:
    """The scripted engine by itself."""
    port = unused_port()
    argv = [sys.executable, "-m", "bench.paced_engine", "--port", str(port), "--alias", MODEL]
    argv += ["--model", str(write_tiny_gguf(folder / "direct.gguf"))]
    with spawned(
        argv, folder / "direct.log", f"http://127.0.0.1:{port}/health", {"PYTHONPATH": str(ROOT)}
    ) as process:
        yield Target("direct", port, MODEL, pids=(process.pid,))


@contextmanager
def paddock(folder: Path) -> Iterator[Target]:
    """`paddock up` with the scripted engine, an access key, and its request log as it is by default."""
    engine = folder / "llama-server"
    command = f"PYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m bench.paced_engine"
    engine.write_text(f'#!/bin/sh\n{command} "$@"\n', encoding="utf-8")
    engine.chmod(0o755)
    source = write_tiny_gguf(folder / "paddock.gguf")
    tables = TABLES.format(engine=engine, model=MODEL, source=source, alias=ALIAS)
    home = {"HOME": str(folder), "XDG_STATE_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT), **home}
    environment |= {"PADDOCK_STATE_DIR": str(folder / "state"), "BENCH_KEY": KEY}
    environment |= {name: value for name, value in os.environ.items() if name.startswith("PADDOCK_")}
    running = start_paddock(folder / "up", tables, environment)
    try:
        running.wait_state(MODEL, "ready")
        yield Target("Paddock", running.port, MODEL, key=KEY, pids=(running.pid,))
    finally:
        running.close()


@contextmanager
def litellm(folder: Path, program: Path, upstream: Target) -> Iterator[Target]:
    """LiteLLM's proxy in front of the scripted engine, with one worker and a key."""
    port = unused_port()
    config = folder / "litellm.yaml"
    config.write_text(LITELLM.format(model=MODEL, port=upstream.port), encoding="utf-8")
    argv = [
        str(program),
        "--config",
        str(config),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--num_workers",
        "1",
    ]
    environment = {"LITELLM_MASTER_KEY": KEY, "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    url = f"http://127.0.0.1:{port}/health/liveliness"
    with spawned(argv, folder / "litellm.log", url, environment) as process:
        yield Target("LiteLLM", port, MODEL, key=KEY, pids=(process.pid,))


def install_litellm(folder: Path) -> Path | str:
    """LiteLLM in an environment of its own: its program, or why there is none."""
    program = folder / "litellm" / "bin" / "litellm"
    if program.exists():
        return program
    for argv in (
        [sys.executable, "-m", "venv", str(folder / "litellm")],
        [str(folder / "litellm" / "bin" / "pip"), "install", "--quiet", "litellm[proxy]"],
    ):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no reason given"]
            return f"cannot be installed here: {lines[-1]}"
    return program


@contextmanager
def router(folder: Path, binary: Path, model: Path) -> Iterator[tuple[Target, Target]]:
    """llama-server as a router in front of a llama-server that it starts; that one, and the router."""
    models = folder / "models"
    models.mkdir()
    (models / f"{MODEL}.gguf").symlink_to(model)
    port = unused_port()
    argv = [str(binary), "--models-dir", str(models), "--port", str(port), "--device", "none"]
    argv += ["-c", "2048", "-np", "1", "-t", "1"]
    environment = {"LD_LIBRARY_PATH": str(binary.parent)}
    with spawned(argv, folder / "router.log", f"http://127.0.0.1:{port}/health", environment) as process:
        front = Target("router", port, MODEL, pids=(process.pid,))
        body = {"model": MODEL, "content": "hi"}
        wait_until(
            lambda: httpx.post(f"http://127.0.0.1:{port}/tokenize", json=body).is_success,
            START_S,
            "the model",
        )
        child = psutil.Process(process.pid).children()[0]
        listening = [c.laddr.port for c in child.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
        yield Target("behind the router", listening[0], MODEL, pids=(child.pid,)), front


def cpu_s(pids: tuple[int, ...]) -> float:
    """Seconds that the threads of these processes have run."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def rss_bytes(pids: tuple[int, ...]) -> int:
    """Memory that these processes hold."""
    return sum(psutil.Process(pid).memory_info().rss for pid in pids)


def settle() -> None:
    """Whatever the last measurement left to be done."""
    time.sleep(0.3)
