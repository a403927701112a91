"""Process settings: flags before environment, and only what `[server]` knows (01 §2.9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.manifest.schema_server import ServerTable
from framework.settings import SERVER_KEYS, Settings
from framework.values.override import Override


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings()
    assert settings.manifest == Path("serve.toml")
    assert (settings.url, settings.key) == (None, None)
    assert settings.overrides() == {}


def test_variables_override_keys_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_LISTEN", "127.0.0.1:9000")
    monkeypatch.setenv("PADDOCK_MAX_WAITING", "5")
    assert Settings().overrides() == {
        "listen": Override("127.0.0.1:9000", "PADDOCK_LISTEN"),
        "max_waiting": Override("5", "PADDOCK_MAX_WAITING"),
    }


def test_flag_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_LISTEN", "127.0.0.1:9000")
    assert Settings().overrides({"listen": "127.0.0.1:1"}) == {"listen": Override("127.0.0.1:1", "--listen")}


def test_empty_flag_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_STATE_DIR", "/elsewhere")
    assert Settings().overrides({"state_dir": ""}) == {"state_dir": Override("", "--state-dir")}


def test_flag_that_is_not_given_leaves_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_LISTEN", "127.0.0.1:9000")
    assert Settings().overrides({"listen": None}) == {"listen": Override("127.0.0.1:9000", "PADDOCK_LISTEN")}


def test_empty_variable_overrides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_LISTEN", "")
    assert Settings().overrides() == {}


def test_state_dir_is_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PADDOCK_STATE_DIR", "here")
    assert Settings().overrides() == {"state_dir": Override(str(tmp_path / "here"), "PADDOCK_STATE_DIR")}


def test_automatic_state_dir_stays_a_word() -> None:
    assert Settings().overrides({"state_dir": "auto"}) == {"state_dir": Override("auto", "--state-dir")}


def test_every_override_is_a_key_of_the_server_table() -> None:
    assert set(SERVER_KEYS) <= set(ServerTable.model_fields)


def test_every_key_that_is_one_value_can_be_overridden() -> None:
    assert set(ServerTable.model_fields) - set(SERVER_KEYS) == {"tls"}


def test_key_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_KEY", "hunter2")
    assert "hunter2" not in repr(Settings())
