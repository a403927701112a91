"""The pages about commands and API name what there is: each option, variable, route, code and kind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from framework import cli
from framework.api.event_kinds import EVENT_KINDS
from framework.api.routes import api_routes
from framework.settings import Settings
from framework.values.process import DEBUG_VARIABLE
from tests.api.world import make_world
from tests.commands.conftest import Paddock

ROOT = Path(cli.__file__).resolve().parent.parent
COMMANDS = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
SHARED_OPTIONS = {"--help", "--wait"}


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_and_option_is_described(paddock: Paddock, name: str) -> None:
    assert f"[`{name}`](#" in COMMANDS
    options = set(re.findall(r"--[a-z-]+", paddock(name, "--help").out)) - SHARED_OPTIONS
    missing = {option for option in options if f"{option}" not in COMMANDS}
    assert not missing


def test_no_option_is_described_that_does_not_exist(paddock: Paddock) -> None:
    known = {
        option for name in cli.COMMANDS for option in re.findall(r"--[a-z-]+", paddock(name, "--help").out)
    }
    assert set(re.findall(r"--[a-z][a-z-]+", COMMANDS)) <= known


def test_every_variable_is_described() -> None:
    variables = {f"PADDOCK_{name.upper()}" for name in Settings.model_fields} | {DEBUG_VARIABLE}
    assert {name for name in variables if f"`{name}`" not in COMMANDS} == set()


def test_every_route_is_described() -> None:
    paths = {route.path.removeprefix("/api/v1") for route in api_routes(make_world().services)}  # type: ignore[attr-defined]
    named = {path for path in paths if path and "{" not in path}
    assert {path for path in named if f"| `{path}` |" not in API} == set()


def test_every_kind_of_event_is_described() -> None:
    assert [kind for kind in EVENT_KINDS if f"`{kind}`" not in API] == []


def test_every_error_code_is_described() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "framework" / "api").rglob("*.py"))
    codes = set(re.findall(r"ApiError\(\s*\d+, \"(\w+)\"", sources))
    assert codes
    assert {code for code in codes if f"`{code}`" not in API} == set()


def test_every_event_that_is_recorded_has_a_known_kind() -> None:
    packages = ("runtime", "reconcile", "proxy")
    files = [path for package in packages for path in (ROOT / "framework" / package).rglob("*.py")]
    calls = re.compile(r"(?:events\.record|\.say)\(\s*\"(\w+)\"")
    found = {kind for path in files for kind in calls.findall(path.read_text(encoding="utf-8"))}
    assert found
    assert found <= set(EVENT_KINDS)
