"""Run a fake engine as a child of the test, without a manager, and talk to it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.support.fakes import FakeEngine
from tests.support.waiting import unused_port, wait_until

KEY = "sk-test"
HEADERS = {"Authorization": f"Bearer {KEY}"}
CHAT = {"messages": [{"role": "user", "content": "hello"}]}
Launch = Callable[..., "Child"]


class Child:
    """A running fake engine; `chat` and `get` send the key."""

    def __init__(self, engine: FakeEngine, model: Path, *arguments: str) -> None:
        self.port = unused_port()
        command = [str(engine.path), "-m", str(model), "--host", "127.0.0.1", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, "--parallel", "2", *arguments],
            env={**os.environ, "LLAMA_API_KEY": KEY},
            stderr=subprocess.PIPE,
            text=True,
        )

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.call("GET", path, headers=headers or HEADERS)

    def chat(self, **fields: Any) -> httpx.Response:
        return self.call("POST", "/v1/chat/completions", headers=HEADERS, json={**CHAT, **fields})

    def call(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        with httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=5, trust_env=False) as client:
            return client.request(method, path, **arguments)

    def health(self) -> int:
        try:
            return self.get("/health").status_code
        except httpx.TransportError:
            return 0

    def wait_healthy(self) -> None:
        wait_until(lambda: self.health() == 200, what="a healthy fake engine")

    def finish(self) -> tuple[int, str]:
        """Exit status and standard error."""
        _, errors = self.process.communicate(timeout=10)
        return self.process.returncode, errors
