"""Commands that need no server: plan, engines, devices, doctor."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from framework.commands.doctor import port_fault
from framework.values.manifest import Listener
from tests.commands.conftest import Paddock
from tests.conftest import MakeFake
from tests.models.test_companions import model as write_model

REFUSED_MODEL = '\n[models.gone]\nsource = "gone.gguf"\n'


@pytest.fixture
def engine(place: Path, fake_engine: Callable[..., Any]) -> Path:
    """A manifest with a fake engine as its default."""
    fake = fake_engine()
    with (place / "serve.toml").open("a") as manifest:
        manifest.write(f'\n[engines.default]\nbinary = "{fake.path}"\n')
    return Path(fake.path)


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_plan_shows_the_command_line(paddock: Paddock, engine: Path) -> None:
    ended = paddock("plan")
    assert ended.code == 0
    assert str(engine) in ended.out
    assert "--port" in ended.out


def test_plan_shows_the_memory_of_each_device(paddock: Paddock, place: Path, fake_engine: MakeFake) -> None:
    fake = fake_engine(devices=["CUDA0: a card (24000 MiB, 8000 MiB free)"])
    with (place / "serve.toml").open("a") as manifest:
        manifest.write(f'\n[engines.default]\nbinary = "{fake.path}"\n')
    lines = paddock("plan").out.splitlines()
    rows = [line.split() for line in lines if " computed" in line or " assumed" in line]
    assert [row[0] for row in rows if row[0] in ("CUDA0", "CPU")] == ["CUDA0", "CPU"]
    assert any("needs" in line and line.rstrip().endswith("of 7.1 GiB") for line in lines)
    assert "  fits" in lines


def test_plan_that_does_not_fit_says_what_helps(paddock: Paddock, place: Path, fake_engine: MakeFake) -> None:
    fake = fake_engine(devices=["CUDA0: a card (24000 MiB, 900 MiB free)"])
    with (place / "serve.toml").open("a") as manifest:
        manifest.write('context = 1_000_000\nplacement = { mode = "manual", gpu_layers = 3 }\n')
        manifest.write(f'\n[engines.default]\nbinary = "{fake.path}"\n')
    ended = paddock("plan")
    assert ended.code == 0
    assert "  does not fit; what helps:" in ended.out.splitlines()
    assert "→ Store the cache as q8_0" in ended.out
    assert "(enough)" in ended.out


def test_a_memory_table_fits_on_a_terminal(
    paddock: Paddock, engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table = paddock("plan").out.partition("MEMORY")[2].partition("  fits")[0]
    assert "prompt cache" in table
    assert max(map(len, table.splitlines())) <= 80


def test_plan_as_json_is_the_shape_of_the_specification(paddock: Paddock, engine: Path) -> None:
    ended = paddock("plan", "--json")
    assert ended.json.keys() == {"manifest", "inventory", "instances", "reasons"}
    assert [instance["model"] for instance in ended.json["instances"]] == ["tiny"]
    assert ended.json["inventory"][-1]["name"] == "CPU"


def test_plan_of_one_model_leaves_the_others_out(paddock: Paddock, engine: Path, place: Path) -> None:
    with (place / "serve.toml").open("a") as manifest:
        manifest.write(REFUSED_MODEL)
    ended = paddock("plan", "tiny", "--json")
    assert ended.code == 0
    assert [instance["model"] for instance in ended.json["instances"]] == ["tiny"]


def test_plan_of_one_model_is_silent_about_the_engines_of_others(
    paddock: Paddock, engine: Path, place: Path
) -> None:
    with (place / "serve.toml").open("a") as manifest:
        manifest.write('\n[engines.broken]\nbinary = "/nowhere/llama-server"\n')
    assert "/nowhere/llama-server" in paddock("plan").out
    one = paddock("plan", "tiny")
    assert (one.code, "/nowhere/llama-server" in one.out) == (0, False)
    assert paddock("plan", "tiny", "--json").json["reasons"] == []


def test_plan_with_a_refused_model_ends_with_1(paddock: Paddock, engine: Path, place: Path) -> None:
    with (place / "serve.toml").open("a") as manifest:
        manifest.write(REFUSED_MODEL)
    ended = paddock("plan", "--json")
    assert ended.code == 1
    refused = ended.json["instances"][1]
    assert refused["granted"] is None
    assert refused["reasons"][0]["code"] == "model_missing"
    assert "gone.gguf" in paddock("plan").out


def test_plan_of_an_unknown_model_ends_with_2(paddock: Paddock, engine: Path) -> None:
    ended = paddock("plan", "tinny")
    assert ended.code == 2
    assert "tiny" in ended.err


@pytest.mark.parametrize("command", ["plan", "engines", "devices"])
def test_broken_manifest_ends_with_2_and_one_line(paddock: Paddock, place: Path, command: str) -> None:
    (place / "serve.toml").write_text("[models.tiny]\nslotz = 4\nsorce = 3\n")
    ended = paddock(command)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.count("\n") == 1
    assert "serve.toml:" in ended.err
    assert "paddock check" in ended.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[access.a]\nkey = "env:PADDOCK_NOT_SET"\n', "export PADDOCK_NOT_SET="),
        (None, "name it with --manifest"),
    ],
    ids=["variable", "manifest"],
)
def test_the_one_line_of_a_broken_manifest_has_what_to_do(
    paddock: Paddock, place: Path, text: str | None, told: str
) -> None:
    (place / "serve.toml").unlink()
    if text is not None:
        (place / "serve.toml").write_text(text)
    ended = paddock("plan")
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert told in ended.err


def test_engines_shows_what_was_found(paddock: Paddock, engine: Path) -> None:
    ended = paddock("engines")
    assert ended.code == 0
    assert str(engine) in ended.out


def test_engines_as_json_is_the_shape_of_the_specification(paddock: Paddock, engine: Path) -> None:
    document = paddock("engines", "--json").json
    assert [found["name"] for found in document["engines"]] == ["default"]
    assert document["engines"][0]["conclusive"] is True


def test_engine_that_is_missing_ends_with_1(paddock: Paddock, place: Path) -> None:
    with (place / "serve.toml").open("a") as manifest:
        manifest.write('\n[engines.default]\nbinary = "no/such/engine"\n')
    ended = paddock("engines", "--json")
    assert ended.code == 1
    assert ended.json["engines"][0]["reasons"][0]["code"] == "binary_missing"
    assert "no/such/engine" in paddock("engines").out


def test_devices_show_their_pool_and_where_they_are(paddock: Paddock, place: Path, engine: Path) -> None:
    with (place / "serve.toml").open("a") as manifest:
        manifest.write('\n[pools.far]\ndevices = ["rpc://127.0.0.1:9"]\n')
    ended = paddock("devices", "--json")
    assert [reason["code"] for reason in ended.json["reasons"]] == ["rpc_unreachable"]
    assert "127.0.0.1:9" in paddock("devices").out


def test_devices_end_with_host_memory(paddock: Paddock, engine: Path) -> None:
    devices = paddock("devices", "--json").json["devices"]
    assert devices[-1]["name"] == "CPU"
    assert devices[-1]["total_bytes"] > 0
    assert "CPU" in paddock("devices").out


def test_doctor_is_content_with_a_good_place(paddock: Paddock, engine: Path) -> None:
    ended = paddock("doctor", "--json")
    assert ended.code == 0, ended.out
    assert {check["name"] for check in ended.json["checks"]} >= {
        "python",
        "state directory",
        "disk",
        "manifest",
        "listener",
        "engine default: found",
        "engine default: runs",
        "model tiny",
    }


@pytest.mark.parametrize(("offline", "mark", "code"), [("0", "note ", 0), ("1", "FAULT", 1)])
def test_doctor_tells_which_models_are_not_downloaded(
    paddock: Paddock,
    engine: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    offline: str,
    mark: str,
    code: int,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", offline)
    monkeypatch.setenv("HF_HOME", str(place / "hf"))
    with (place / "serve.toml").open("a") as manifest:
        manifest.write('\n[models.far]\nsource = "hf:org/far-GGUF:Q4_K_M"\n')
    ended = paddock("doctor")
    assert ended.code == code, ended.out
    assert f"{mark} model far" in ended.out
    assert "paddock pull far" in ended.out


def test_doctor_names_the_folder_that_holds_the_token(paddock: Paddock, engine: Path, place: Path) -> None:
    assert f"      {place / 'state'} holds the logs" in paddock("doctor").out


def faults(document: Any) -> dict[str, Any]:
    """The reasons of all checks that are not ok, by name."""
    return {check["name"]: check["reason"] for check in document["checks"] if not check["ok"]}


@pytest.mark.parametrize(
    ("change", "name", "code"),
    [
        pytest.param(
            lambda p: (p / "tiny.gguf").write_bytes(b"x" * 64), "model tiny", "bad_model_file", id="no-model"
        ),
        pytest.param(lambda p: (p / "tiny.gguf").unlink(), "model tiny", "model_missing", id="missing-model"),
        pytest.param(
            lambda p: (p / "serve.toml").write_text("x = 1"),
            "manifest",
            "manifest_invalid",
            id="broken-manifest",
        ),
        pytest.param(
            lambda p: (p / "state").mkdir(mode=0o755),
            "state directory",
            "state_dir_unusable",
            id="open-directory",
        ),
    ],
)
def test_doctor_names_what_is_wrong_and_how_to_fix_it(
    paddock: Paddock, engine: Path, place: Path, change: Callable[[Path], Any], name: str, code: str
) -> None:
    change(place)
    ended = paddock("doctor", "--json")
    assert ended.code == 1
    reason = faults(ended.json)[name]
    assert reason["code"] == code
    assert reason["remedy"]
    assert "FAULT" in paddock("doctor").out


@pytest.mark.parametrize(
    ("architecture", "code"), [(None, "drafter_missing"), ("llama", "companion_unfit"), ("eagle3", None)]
)
def test_doctor_finds_a_drafter_that_is_not_used(
    paddock: Paddock, place: Path, engine: Path, architecture: str | None, code: str | None
) -> None:
    if architecture is not None:
        write_model(place / "d.gguf", architecture=architecture)
    with (place / "serve.toml").open("a") as manifest:
        manifest.write('\n[speculation.pair]\nmode = "eagle3"\ndraft = "d.gguf"\n')
        manifest.write('[models.with-drafter]\nsource = "tiny.gguf"\nspeculation = "pair"\n')
    fault = faults(paddock("doctor", "--json").json).get("model with-drafter: drafter")
    assert (fault and fault["code"]) == code


def test_doctor_knows_of_warnings_of_the_manifest(paddock: Paddock, place: Path, engine: Path) -> None:
    with (place / "serve.toml").open("a") as manifest:
        manifest.write('\n[speculation.odd]\nmode = "fastest"\n')
    out = paddock("doctor").out
    assert "note  manifest" in out
    assert "fastest" in out


def test_doctor_finds_an_engine_that_does_not_start(paddock: Paddock, place: Path) -> None:
    broken = place / "llama-server"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    with (place / "serve.toml").open("a") as manifest:
        manifest.write(f'\n[engines.default]\nbinary = "{broken}"\n')
    reason = faults(paddock("doctor", "--json").json)["engine default: runs"]
    assert reason["code"] == "probe_inconclusive"
    assert str(broken) in reason["message"]


def test_doctor_finds_a_port_that_is_taken(
    paddock: Paddock, engine: Path, monkeypatch: pytest.MonkeyPatch, taken_port: int
) -> None:
    monkeypatch.setenv("PADDOCK_LISTEN", f"127.0.0.1:{taken_port}")
    reason = faults(paddock("doctor", "--json").json)["listener"]
    assert reason["code"] == "listener_unusable"
    assert str(taken_port) in reason["message"]


def test_doctor_is_content_when_our_own_server_holds_the_port(
    paddock: Paddock, engine: Path, server: Any
) -> None:
    assert "listener" not in faults(paddock("doctor", "--json").json)


def test_address_of_no_network_of_ours_cannot_be_listened_on() -> None:
    reason = port_fault(Listener("203.0.113.7", 8080))
    assert reason is not None
    assert "203.0.113.7:8080" in reason.message


def test_free_port_is_no_fault(free_port: int) -> None:
    assert port_fault(Listener("127.0.0.1", free_port)) is None
