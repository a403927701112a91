"""Where the running server is, and who may be given the token."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framework import state_dir
from framework.commands.failure import CommandFailed
from framework.commands.target import Target, find_target
from framework.settings import Settings

NO_FILES = [
    pytest.param(os.mkfifo, id="pipe"),
    pytest.param(lambda path: path.symlink_to("/dev/zero"), id="device"),
]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory with the token of a running server."""
    path = tmp_path / "state"
    monkeypatch.setenv("PADDOCK_STATE_DIR", str(path))
    state_dir.prepare(path)
    state_dir.new_token(path)
    return path


def target(tmp_path: Path, text: str = "", url: str | None = None) -> Target:
    manifest = tmp_path / "serve.toml"
    manifest.write_text(text)
    return find_target(Settings(), manifest, url)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "http://127.0.0.1:8080", id="default"),
        pytest.param('[server]\nlisten = "127.0.0.1:9000"', "http://127.0.0.1:9000", id="manifest"),
        pytest.param('[server]\nlisten = "0.0.0.0:9000"', "http://127.0.0.1:9000", id="every-address"),
        pytest.param('[server]\nlisten = "[::]:9000"', "http://[::1]:9000", id="every-address-v6"),
        pytest.param('[server]\nlisten = "box:9000"', "http://box:9000", id="name"),
        pytest.param("[server]\nlisten = 5", "http://127.0.0.1:8080", id="listener-of-wrong-type"),
        pytest.param('[server]\nlisten = "x"', "http://127.0.0.1:8080", id="listener-that-is-none"),
        pytest.param("server = 5", "http://127.0.0.1:8080", id="table-of-wrong-type"),
        pytest.param("[[[", "http://127.0.0.1:8080", id="no-toml"),
        pytest.param("a = " + "[" * 5000, "http://127.0.0.1:8080", id="deep-nesting"),
        pytest.param(".".join("a" * 400_000) + " = 1", "http://127.0.0.1:8080", id="endless-key"),
        pytest.param('\ufeff[server]\r\nlisten = "a:1"', "http://a:1", id="as-windows-writes-it"),
    ],
)
def test_listener_comes_from_the_manifest(tmp_path: Path, text: str, expected: str) -> None:
    assert target(tmp_path, text).url == expected


def test_recorded_address_wins_over_the_manifest(tmp_path: Path, directory: Path) -> None:
    state_dir.record_listener(directory, "127.0.0.1:7000")
    assert target(tmp_path, '[server]\nlisten = "127.0.0.1:9000"').url == "http://127.0.0.1:7000"


def test_missing_manifest_still_has_a_default(tmp_path: Path) -> None:
    assert find_target(Settings(), tmp_path / "gone.toml", None).url == "http://127.0.0.1:8080"


def test_typed_address_wins_over_everything(
    tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_dir.record_listener(directory, "127.0.0.1:7000")
    monkeypatch.setenv("PADDOCK_URL", "http://127.0.0.1:7001")
    assert target(tmp_path).url == "http://127.0.0.1:7001"
    assert target(tmp_path, url="http://127.0.0.1:7002").url == "http://127.0.0.1:7002"


def test_state_directory_may_be_named_in_the_manifest(tmp_path: Path) -> None:
    own = tmp_path / "mine"
    state_dir.prepare(own)
    token = state_dir.new_token(own)
    assert target(tmp_path, '[server]\nstate_dir = "mine"').credential == token


@pytest.mark.parametrize(
    ("url", "ours"),
    [
        pytest.param(None, True, id="found-by-manifest"),
        pytest.param("http://127.0.0.1:8080", True, id="same-address"),
        pytest.param("localhost:8080", True, id="loopback-by-name"),
        pytest.param("http://[::1]:8080", True, id="loopback-v6"),
        pytest.param("http://127.0.0.1:8081", False, id="other-port"),
        pytest.param("http://10.0.0.5:8080", False, id="other-machine"),
        pytest.param("https://127.0.0.1:8080", False, id="other-scheme"),
        pytest.param("http://localhost.evil.example:8080", False, id="name-that-looks-local"),
    ],
)
def test_token_goes_to_our_own_server_only(
    tmp_path: Path, directory: Path, url: str | None, ours: bool
) -> None:
    found = target(tmp_path, url=url).credential
    assert found == (state_dir.read_token(directory) if ours else None)


def test_access_key_goes_where_the_token_does_not(
    tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDOCK_KEY", "a-key")
    assert target(tmp_path, url="https://models.example").credential == "a-key"
    assert target(tmp_path).credential == state_dir.read_token(directory)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param("https://models.example", "https://models.example:443", id="https"),
        pytest.param("http://models.example/", "http://models.example:80", id="http"),
        pytest.param("10.0.0.5:9000", "http://10.0.0.5:9000", id="without-scheme"),
    ],
)
def test_typed_address_is_completed(tmp_path: Path, url: str, expected: str) -> None:
    assert target(tmp_path, url=url).url == expected


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a:1",
        "http://",
        "http://a:x",
        "http://a:99999",
        "http://u:p@a:1",
        "http://a:1/v1",
        "http://[",
        "a?b",
    ],
)
def test_address_that_is_none_is_bad_usage(tmp_path: Path, url: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        target(tmp_path, url=url)
    assert caught.value.code == 2
    assert caught.value.message.startswith("--url: found ")
    assert "http://HOST:PORT" in caught.value.message


def test_address_of_the_variable_is_named_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_URL", "ftp://a:1")
    with pytest.raises(CommandFailed, match=r"^PADDOCK_URL: found 'ftp://a:1'"):
        target(tmp_path)
    monkeypatch.setenv("PADDOCK_URL", "zzz")
    assert target(tmp_path).found_by == "PADDOCK_URL"
    assert target(tmp_path, url="zzz").found_by == "--url"


@pytest.mark.parametrize("make", NO_FILES)
def test_manifest_that_is_no_file_is_not_read(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    make(tmp_path / "other.toml")
    assert find_target(Settings(), tmp_path / "other.toml", None).url == "http://127.0.0.1:8080"
