"""What the end-to-end tests say to a running manager: official client, raw streams, manifests."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from openai import OpenAI

from tests.support.fakes import FakeEngine
from tests.support.paddock import RunningPaddock

CHAT = "/v1/chat/completions"
TIMEOUT_S = 60.0
# The demo model now and then has nothing to say.
NO_EARLY_END = {"ignore_eos": True}


def openai_client(paddock: RunningPaddock, key: str = "none") -> OpenAI:
    """The official client, without retries of its own."""
    http = httpx.Client(trust_env=False, timeout=TIMEOUT_S)
    return OpenAI(base_url=f"{paddock.base_url}/v1", api_key=key, max_retries=0, http_client=http)


def chat(paddock: RunningPaddock, model: str, **fields: Any) -> httpx.Response:
    """One chat request; the answer is returned whatever its status."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Say hello."}],
        "max_tokens": 8,
        **fields,
    }
    return httpx.post(paddock.base_url + CHAT, json=body, timeout=TIMEOUT_S, trust_env=False)


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """The error object of an answer."""
    error: dict[str, Any] = answer.json()["error"]
    return error


def engine_table(engine: FakeEngine | Path) -> str:
    """`[engines.default]` for a fake engine."""
    path = engine if isinstance(engine, Path) else engine.path
    return f'[engines.default]\nbinary = "{path}"\n'


def model_table(name: str, source: Path, **lines: Any) -> str:
    """`[models.NAME]`; values are written as TOML by their Python type."""
    settings = {"context": 1024, "slots": 2, "load": "at-start", **lines}
    body = "".join(f"{key} = {_toml(value)}\n" for key, value in settings.items())
    return f'[models.{name}]\nsource = "{source}"\n{body}'


@dataclass
class Stream:
    """A chat stream that is read in a thread while the test does other things."""

    paddock: RunningPaddock
    model: str
    fields: dict[str, Any] = field(default_factory=dict)
    raw: bytes = b""
    error: Exception | None = None

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def join(self) -> bytes:
        """Everything that was received, once the stream has ended."""
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive(), (
            f"the stream is still open after {TIMEOUT_S} s: {self.raw[-500:]!r}"
        )
        if self.error is not None:
            raise self.error
        return self.raw

    @property
    def pieces(self) -> list[str]:
        """The pieces of text of all whole events so far, in order."""
        events = [line[6:] for line in self.raw.decode().split("\n\n") if line.startswith("data: {")]
        choices = [choice for event in events for choice in json.loads(event).get("choices", [])]
        return [text for choice in choices if (text := choice["delta"].get("content"))]

    def _read(self) -> None:
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": "Count."}],
            "stream": True,
            **self.fields,
        }
        url = self.paddock.base_url + CHAT
        try:
            with httpx.stream("POST", url, json=body, timeout=TIMEOUT_S, trust_env=False) as answer:
                for chunk in answer.iter_raw():
                    self.raw += chunk
        except Exception as error:  # noqa: BLE001  handed to the test's thread
            self.error = error


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return str(value)
