"""`paddock pull`: what it prints, and how it ends."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.conftest import Paddock
from tests.support.hub_stand_in import HubStandIn
from tests.support.model_files import write_tiny_gguf
from tools.fetch import ROOT

REPO = "org/Tiny-GGUF"
SOURCE = f"hf:{REPO}:Q4_K_M"


@pytest.fixture
def hub(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStandIn]:
    """A stand-in with one model, and `remote` in the manifest for it."""
    data = write_tiny_gguf(tmp_path / "made" / "x.gguf").read_bytes()
    with HubStandIn() as stand_in:
        stand_in.add(REPO, {"Tiny-Q4_K_M.gguf": data})
        monkeypatch.setenv("HF_ENDPOINT", stand_in.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        with (place / "serve.toml").open("a") as manifest:
            manifest.write(f'\n[models.remote]\nsource = "{SOURCE}"\naliases = ["far"]\n')
        yield stand_in


def test_a_model_of_the_manifest_is_fetched_by_its_alias(paddock: Paddock, hub: HubStandIn) -> None:
    ended = paddock("pull", "far")
    assert ended.code == 0
    path = Path(ended.out.strip())
    assert path.name == "Tiny-Q4_K_M.gguf"
    assert path.is_file()
    assert "100 %" in ended.err


def test_a_source_needs_no_manifest_and_a_second_pull_asks_nobody(
    paddock: Paddock, hub: HubStandIn, place: Path
) -> None:
    (place / "serve.toml").unlink()
    first = paddock("pull", SOURCE, "--json")
    assert (first.code, first.json["variant"], first.json["from_cache"]) == (0, "Q4_K_M", False)
    hub.seen.clear()
    second = paddock("pull", SOURCE, "--json")
    assert (second.json["path"], second.json["from_cache"]) == (first.json["path"], True)
    assert hub.seen == []


def test_a_model_of_this_machine_has_nothing_to_download(
    paddock: Paddock, hub: HubStandIn, place: Path
) -> None:
    ended = paddock("pull", "tiny")
    assert (ended.code, ended.out.strip()) == (0, str(place / "tiny.gguf"))


def test_a_local_model_that_is_missing_ends_with_1(paddock: Paddock, hub: HubStandIn, place: Path) -> None:
    (place / "tiny.gguf").unlink()
    assert paddock("pull", "tiny").code == 1


def test_a_repository_that_does_not_exist_ends_with_1_and_one_line(paddock: Paddock, hub: HubStandIn) -> None:
    ended = paddock("pull", "hf:org/none:Q8_0")
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert "HF_TOKEN" in ended.err


@pytest.mark.parametrize("name", ["remoot", "hf:nonsense", "hf:o/r:"])
def test_what_is_no_model_ends_with_2(paddock: Paddock, hub: HubStandIn, name: str) -> None:
    ended = paddock("pull", name)
    assert (ended.code, ended.err.count("\n")) == (2, 1)


def test_offline_ends_with_1_and_names_the_variable(
    paddock: Paddock, hub: HubStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    ended = paddock("pull", SOURCE)
    assert ended.code == 1
    assert "HF_HUB_OFFLINE" in ended.err
    assert hub.seen == []


def test_a_terminal_gets_a_bar(hub: HubStandIn, place: Path) -> None:
    hub.faults.bytes_per_s = 4096
    screen, terminal = pty.openpty()
    command = [sys.executable, "-m", "framework", "pull", SOURCE]
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    process = subprocess.Popen(
        command, stderr=terminal, stdout=subprocess.DEVNULL, cwd=place, env=environment
    )
    os.close(terminal)
    shown = _read_all(screen)
    assert process.wait(20.0) == 0
    assert "\u2501" in shown
    assert "Tiny-Q4_K_M.gguf" in shown


def _read_all(screen: int) -> str:
    data = b""
    with contextlib.suppress(OSError):
        while piece := os.read(screen, 4096):
            data += piece
    os.close(screen)
    return data.decode("utf-8", "replace")


def test_a_plan_of_a_model_that_is_not_here_names_the_command(paddock: Paddock, hub: HubStandIn) -> None:
    ended = paddock("plan", "remote", "--json")
    assert ended.code == 1
    assert "paddock pull" in ended.json["instances"][0]["reasons"][0]["remedy"]


def test_a_model_that_is_to_see_gets_its_projector_as_well(
    paddock: Paddock, hub: HubStandIn, place: Path, tmp_path: Path
) -> None:
    eyes = write_tiny_gguf(tmp_path / "eyes.gguf", architecture="clip").read_bytes()
    hub.repos[REPO].files["mmproj-F16.gguf"] = eyes
    assert paddock("pull", "far", "--json").json["projector"] is None
    with (place / "serve.toml").open("a") as manifest:
        manifest.write('projector = "auto"\n')
    found = paddock("pull", "far", "--json").json
    assert found["projector"] == str(Path(found["path"]).with_name("mmproj-F16.gguf"))
    argv = paddock("plan", "remote", "--json").json["instances"][0]["argv"]
    assert argv[argv.index("--mmproj") + 1] == found["projector"]


def test_a_drafter_of_the_repository_comes_with_a_model_of_the_manifest(
    paddock: Paddock, hub: HubStandIn, tmp_path: Path
) -> None:
    hub.repos[REPO].files["mtp-Tiny.gguf"] = write_tiny_gguf(tmp_path / "d.gguf").read_bytes()
    assert paddock("pull", SOURCE, "--json").json["drafter"] is None
    found = paddock("pull", "far", "--json").json
    assert found["drafter"] == str(Path(found["path"]).with_name("mtp-Tiny.gguf"))
    (instance,) = paddock("plan", "remote", "--json").json["instances"]
    assert found["drafter"] in instance["argv"]


def test_a_drafter_of_a_hub_comes_with_a_model_of_this_machine(
    paddock: Paddock, hub: HubStandIn, place: Path
) -> None:
    with (place / "serve.toml").open("a") as manifest:
        manifest.write(f'\n[speculation.s]\nmode = "draft"\ndraft = "{SOURCE}"\n')
        manifest.write('[models.small]\nsource = "tiny.gguf"\nspeculation = "s"\n')
    (before,) = paddock("plan", "small", "--json").json["instances"]
    assert "paddock pull small" in str(before)
    ended = paddock("pull", "small", "--json")
    assert (ended.code, ended.json["path"]) == (0, str(place / "tiny.gguf"))
    assert Path(ended.json["drafter"]).name == "Tiny-Q4_K_M.gguf"
    (after,) = paddock("plan", "small", "--json").json["instances"]
    assert after["argv"][after["argv"].index("--model-draft") + 1] == ended.json["drafter"]
    said = paddock("pull", "small")
    assert "in the cache already" in said.err
    assert SOURCE in said.err
