"""HTTPS: a client that trusts the certificate, the commands, and a certificate that is renewed meanwhile."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
from pathlib import Path

import httpx

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import engine_table, model_table
from tests.support.waiting import wait_until

DATA = Path(__file__).resolve().parents[1] / "data" / "tls"


def install(folder: Path, name: str) -> None:
    """Put a pair in force as a renewal does: the key, then the certificate."""
    for source, target in ((f"{name}.key", "key.pem"), (f"{name}.crt", "chain.pem")):
        draft = folder / f".{target}"
        shutil.copy(DATA / source, draft)
        draft.chmod(0o600)
        draft.replace(folder / target)


def shown(port: int) -> str:
    """The certificate that a new connection gets."""
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=10)


def test_https_serves_clients_and_commands_and_takes_a_renewed_certificate(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    install(tmp_path, "one")
    tls = f'tls = {{ certificate = "file:{tmp_path}/chain.pem", key = "file:{tmp_path}/key.pem" }}'
    tables = engine_table(fake_engine()) + model_table("chat", tiny_gguf)
    paddock = paddock_up(tables, server=tls, wait=False)
    wait_until(lambda: paddock.command("status").returncode == 0, 60, "the command to reach the server")
    paddock.wait(
        lambda: json.loads(paddock.command("status", "--json").stdout)["models"][0]["state"] == "ready",
        30,
        "the model",
    )
    url = f"https://localhost:{paddock.port}/v1/chat/completions"
    hello = {"model": "chat", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
    trusting = ssl.create_default_context(cafile=str(DATA / "one.crt"))
    assert httpx.post(url, json=hello, verify=trusting, trust_env=False).status_code == 200

    with socket.create_connection(("127.0.0.1", paddock.port)) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200" not in plain.recv(1000)

    assert shown(paddock.port) == (DATA / "one.crt").read_text()
    install(tmp_path, "two")
    wait_until(lambda: shown(paddock.port) == (DATA / "two.crt").read_text(), 30, "the renewed certificate")
    wait_until(lambda: paddock.command("status").returncode == 0, 30, "the command to know the new one")

    # Half of a renewal, or a slip: what is in force stays.
    (tmp_path / "chain.pem").write_text("no certificate")
    events = ("events", "--json")
    paddock.wait(lambda: "tls_unusable" in paddock.command(*events).stdout, 30, "the refusal to be told")
    assert shown(paddock.port) == (DATA / "two.crt").read_text()
