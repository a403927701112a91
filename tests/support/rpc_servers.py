"""Real `ggml-rpc-server` processes as devices of their own, and a server of another version of the protocol.

Such a server serves one program at a time and keeps whatever memory its one program takes, so its resident
memory is what a device holds, and a limit on its address space is a device that is full.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.support.waiting import unused_port, wait_until

START_S = 30.0
# An empty list of Vulkan devices: what the server lends is then memory of this machine.
NO_GPU = {"GGML_VK_VISIBLE_DEVICES": ""}
HELLO = 14
HEAD = struct.Struct("<BQ")
LENGTH = struct.Struct("<Q")
# Version, padding, and what the connection can do.
HELLO_ANSWER_BYTES = 28


@dataclass
class RpcServer:
    """A running `ggml-rpc-server` on a loopback port."""

    process: subprocess.Popen[bytes]
    port: int
    log_path: Path
    idle_bytes: int = field(init=False)
    """Resident before anything was loaded."""

    def __post_init__(self) -> None:
        # Looked up, not tried: a connection would be its one client.
        wait_until(self._listens, START_S, "the RPC server to listen")
        self.idle_bytes = self.resident_bytes()

    @property
    def endpoint(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.port}"

    @property
    def device(self) -> str:
        """What stands in the `devices` of a pool."""
        return f"rpc://{self.endpoint}"

    def resident_bytes(self) -> int:
        """What it holds now, its own program included."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def held_bytes(self) -> int:
        """What it holds for the program that uses it."""
        return self.resident_bytes() - self.idle_bytes

    def leave_bytes(self, count: int | None) -> None:
        """Let it take only so many more bytes, as if others had taken the rest; None lifts the limit."""
        process = psutil.Process(self.process.pid)
        limit = resource.RLIM_INFINITY if count is None else process.memory_info().vms + count
        process.rlimit(psutil.RLIMIT_AS, (limit, resource.RLIM_INFINITY))

    def log_text(self) -> str:
        """Everything it printed."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def is_running(self) -> bool:
        """Whether it still serves."""
        return self.process.poll() is None

    def _listens(self) -> bool:
        assert self.is_running(), f"the RPC server ended: {self.log_text()}"
        sockets = psutil.Process(self.process.pid).net_connections("tcp4")
        return any(entry.status == psutil.CONN_LISTEN for entry in sockets)

    def stop(self) -> None:
        """End it; a second call does nothing."""
        if self.is_running():
            self.process.kill()
        self.process.wait()


StartServer = Callable[[], RpcServer]
"""Starts one more server."""


def start_rpc_server(engine_binary: Path, folder: Path, port: int | None = None) -> RpcServer:
    """The server that came with this engine, with host memory as its device. Listens when this returns."""
    port = port or unused_port()
    log_path = folder / f"rpc-server-{port}.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [engine_binary.with_name("ggml-rpc-server"), "--host", "127.0.0.1", "--port", str(port)],
            env={**os.environ, **NO_GPU},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        return RpcServer(process, port, log_path)
    except AssertionError:
        process.kill()
        process.wait()
        raise


class OtherVersion:
    """A server that speaks version 3.6.0 of the protocol and nothing else."""

    version = "3.6.0"

    def __init__(self) -> None:
        self.port = unused_port()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        """Listen no more."""
        # Only a shutdown wakes the thread that waits for connections.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(START_S)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError):
                self._answer(client)

    def _answer(self, client: socket.socket) -> None:
        command, size = HEAD.unpack(_exactly(client, HEAD.size))
        _exactly(client, size)
        if command == HELLO:
            numbers = bytes(int(part) for part in self.version.split("."))
            client.sendall(LENGTH.pack(HELLO_ANSWER_BYTES) + numbers.ljust(HELLO_ANSWER_BYTES, b"\0"))


def _exactly(client: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        if not (chunk := client.recv(size - len(received))):
            raise ConnectionResetError
        received += chunk
    return received
