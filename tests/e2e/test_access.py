"""Access keys of a running manager: limits over a reload and a restart, and where no key is ever seen."""

from __future__ import annotations

import socket
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import CHAT, engine_table, error_of, model_table
from tests.support.paddock import RunningPaddock

LAPTOP, TOOL, WRONG = "laptop-hunter2-secret", "tool-hunter3-secret", "wrong-hunter4-secret"
ACCESS = f"""
[access.laptop]
key = "env:MY_LAPTOP_SECRET"
dashboard = "view"
[access.tool]
key = "sha256:{sha256(TOOL.encode()).hexdigest()}"
models = ["small"]
tokens = "5/day"
"""


def start(paddock_up: StartPaddock, engine: MakeFake, model: Path) -> RunningPaddock:
    tables = engine_table(engine()) + model_table("small", model) + model_table("large", model)
    paddock = paddock_up(ACCESS + tables, environment={"MY_LAPTOP_SECRET": LAPTOP})
    for name in ("small", "large"):
        paddock.wait_state(name, "ready")
    return paddock


def ask(paddock: RunningPaddock, key: str, model: str = "small", **headers: str) -> httpx.Response:
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
    sent = {"Authorization": f"Bearer {key}", **headers}
    return httpx.post(paddock.base_url + CHAT, json=body, headers=sent, timeout=30, trust_env=False)


def test_a_key_opens_its_models_until_its_tokens_are_used_whatever_is_restarted(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = start(paddock_up, fake_engine, tiny_gguf)
    assert error_of(ask(paddock, TOOL, "large"))["code"] == "model_not_allowed"
    assert error_of(ask(paddock, WRONG))["code"] == "key_invalid"
    assert ask(paddock, TOOL).status_code == 200
    refused = ask(paddock, TOOL)
    assert (refused.status_code, error_of(refused)["code"]) == (429, "tokens_limited")
    assert int(refused.headers["retry-after"]) > 3600
    assert ask(paddock, LAPTOP).status_code == 200

    seen = paddock.events()[-1]["id"]
    paddock.edit('dashboard = "view"', 'dashboard = "none"')
    paddock.wait(lambda: paddock.events(since=seen, kind="manifest_loaded"), 30, "the reload")
    assert ask(paddock, TOOL).status_code == 429
    paddock.stop()
    paddock.restart()
    assert ask(paddock, TOOL).status_code == 429

    paddock.edit('tokens = "5/day"', 'tokens = "5000/day"')
    paddock.wait(lambda: ask(paddock, TOOL).status_code == 200, 30, "the larger budget")
    paddock.edit("[access.tool]", '[access.gone]\nkey = "env:MY_LAPTOP_SECRET"\n[access.tool]')
    paddock.wait(lambda: "key_shared" in str(paddock.status()["manifest"]["error"]), 30, "the refusal")


def test_keys_are_seen_nowhere(paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path) -> None:
    paddock = start(paddock_up, fake_engine, tiny_gguf)
    ask(paddock, LAPTOP)
    ask(paddock, TOOL)
    ask(paddock, WRONG)
    with socket.create_connection(("127.0.0.1", paddock.port)) as raw:
        # Its parts are no headers, and a name of a model with line ends is no line of the log.
        raw.sendall(
            f"GET /v1/models/x%0d%0afaked HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {LAPTOP}\r\n"
            "X-Request-Id: req-mine\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b"".join(iter(lambda: raw.recv(65536), b""))
    assert b"404" in answer.split(b"\r\n")[0]
    assert b"req-mine" not in answer
    api = paddock.api("GET", "/events?limit=1000").text + paddock.api("GET", "/status").text
    scraped = httpx.get(
        f"{paddock.base_url}/metrics", headers={"X-Api-Key": LAPTOP}, timeout=30, trust_env=False
    )
    assert scraped.status_code == 200
    texts = [paddock.log_text(), api, scraped.text, answer.decode()]
    manager = psutil.Process(paddock.pid)
    children = manager.children(recursive=True)
    assert len(children) >= 2
    for process in (manager, *children):
        texts.append(" ".join(process.cmdline()))
    for child in children:
        texts.append(str(child.environ()))
    files = [path for path in paddock.state_dir.rglob("*") if path.is_file()]
    texts += [path.read_bytes().decode("latin-1") for path in files]
    assert [text[:200] for text in texts if "hunter" in text] == []
    assert not any(line.startswith("faked") for line in paddock.log_text().splitlines())


def test_a_header_with_a_line_end_inside_is_no_request(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("small", tiny_gguf, load="on-demand"))
    for value in (b"a\rb", b"a\x00b", b"a\r\n b"):
        with socket.create_connection(("127.0.0.1", paddock.port)) as raw:
            raw.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: " + value + b"\r\n\r\n")
            raw.settimeout(10)
            first = raw.recv(65536)
        head, _, _ = first.partition(b"\r\n\r\n")
        assert b"a\r" not in head
        assert first.startswith((b"HTTP/1.1 400", b"HTTP/1.1 200"))
