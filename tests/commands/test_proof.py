"""How a command proves itself to a server, and to which servers it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.world import key
from tests.commands.conftest import Paddock, Running


def test_server_of_another_manifest_does_not_know_us(paddock: Paddock, server: Running, place: Path) -> None:
    (place / "state" / "token").write_text("token of another run")
    ended = paddock("status")
    assert ended.code == 3
    assert "--manifest" in ended.err


def test_token_is_not_sent_to_an_address_that_is_not_ours(
    paddock: Paddock, server: Running, place: Path
) -> None:
    (place / "state" / "listen").write_text("127.0.0.1:1")
    ended = paddock("status", "--url", f"http://127.0.0.1:{server.port}")
    assert ended.code == 3


def test_our_own_server_may_be_named_by_its_address(paddock: Paddock, server: Running) -> None:
    assert paddock("status", "--url", f"http://localhost:{server.port}").code == 0


def test_access_key_opens_another_server(
    paddock: Paddock, server: Running, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "state" / "listen").unlink()
    (place / "state" / "token").unlink()
    server.world.declare(key("laptop", "operate-secret", "view"))
    monkeypatch.setenv("PADDOCK_KEY", "operate-secret")
    monkeypatch.setenv("PADDOCK_URL", f"127.0.0.1:{server.port}")
    assert paddock("status").code == 0
    ended = paddock("load", "chat")
    assert ended.code == 1
    assert "operate" in ended.err
