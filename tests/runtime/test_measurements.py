"""Measurements on disk: found again for the same launch, never believed when they are not plainly ours."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.runtime import measurements
from framework.runtime.measurements import FOLDER, Measurements, decode, encode, measurement_key
from framework.values.device import Device
from framework.values.engine import FileId
from framework.values.measurement import EngineChoice, MeasuredRow, Measurement
from framework.values.plan import LaunchPlan, Section
from tests.engines.programs import program
from tests.support.launch_plans import a_plan

KEY = "a" * 40
ROW = MeasuredRow("CUDA0", "CUDA0", 4403, 1024, 140, 24000)
HOST = MeasuredRow("CPU", "Host", 281, 0, 24)
MEASURED = Measurement((ROW, HOST), (HOST,), 851, EngineChoice((ROW,), 8192, 20, 3))
FILE = FileId(Path("/models/m.gguf"), 100, 5)
CPU = Device("CPU", "cpu", 1000, 900)


@pytest.fixture
def known(tmp_path: Path) -> Measurements:
    (tmp_path / "state").mkdir(mode=0o700)
    found = Measurements(tmp_path / "state")
    found.keep(KEY, MEASURED)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / FOLDER / f"{KEY}.json"


def test_what_was_kept_is_found(known: Measurements) -> None:
    assert known.find(KEY) == MEASURED
    assert known.find("b" * 40) is None


def test_another_process_finds_it(known: Measurements, tmp_path: Path) -> None:
    assert Measurements(tmp_path / "state").find(KEY) == MEASURED


def test_without_a_directory_nothing_is_remembered() -> None:
    found = Measurements()
    found.keep(KEY, MEASURED)
    assert found.find(KEY) is None


def test_files_and_directory_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Measurements(tmp_path / "new" / "state").keep(KEY, MEASURED)
    finally:
        os.umask(before)
    folder = tmp_path / "new" / "state" / FOLDER
    assert [entry.stat().st_mode & 0o777 for entry in (folder.parent, folder)] == [0o700] * 2
    assert [(file.name, file.stat().st_mode & 0o777) for file in folder.iterdir()] == [(f"{KEY}.json", 0o600)]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.write_bytes(b"\xff\x00{"), id="no text"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:-5]), id="cut off"),
        pytest.param(lambda path: path.write_bytes(b"[" * 60_000), id="deeply nested"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes() + b" " * 2**17), id="too long"),
        pytest.param(lambda path: path.chmod(0o644), id="others may read it"),
        pytest.param(lambda path: path.parent.chmod(0o755), id="others may enter"),
        pytest.param(lambda path: (path.unlink(), os.mkfifo(path, 0o600)), id="a pipe"),
        pytest.param(
            lambda path: (path.rename(path.with_suffix(".x")), path.symlink_to(path.with_suffix(".x"))),
            id="a link",
        ),
    ],
)
def test_what_is_not_plainly_ours_is_no_answer(known: Measurements, path: Path, damage: Any) -> None:
    damage(path)
    assert known.find(KEY) is None


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"format": 0}, id="another format"),
        pytest.param({"asked": []}, id="no rows"),
        pytest.param({"asked": {}}, id="no list"),
        pytest.param({"asked": [{"device": "CPU"}]}, id="half a row"),
        pytest.param({"projector_mib": -1}, id="less than nothing"),
        pytest.param({"projector_mib": 1e3}, id="a fraction"),
        pytest.param({"projector_mib": True}, id="a truth"),
        pytest.param({"projector_mib": 10**30}, id="too much"),
        pytest.param({"choice": {"table": []}}, id="half a choice"),
        pytest.param({"choice": 5}, id="no choice"),
    ],
)
def test_values_of_other_kinds_are_no_answer(change: dict[str, Any]) -> None:
    document = {**json.loads(encode(MEASURED)), **change}
    assert decode(json.dumps(document).encode()) is None


@given(st.binary(max_size=200))
def test_no_content_is_a_fault(data: bytes) -> None:
    assert decode(data) is None


def test_what_cannot_be_written_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    found = Measurements(tmp_path / "state")
    found.keep(KEY, MEASURED)
    assert found.find(KEY) is None


def test_the_oldest_are_dropped(known: Measurements, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "MOST_FILES", 3)
    os.utime(path, ns=(1, 1))
    for letter in "bcd":
        known.keep(letter * 40, MEASURED)
    assert sorted(file.stem[0] for file in path.parent.iterdir()) == ["b", "c", "d"]


@pytest.fixture
def plan(tmp_path: Path) -> LaunchPlan:
    return a_plan(program(tmp_path), Section("context", ("-c", "4096")), env={"LLAMA_ARG_MLOCK": "1"})


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda plan: {"env": {"LLAMA_ARG_MLOCK": "0"}}, id="a variable of the engine"),
        pytest.param(lambda plan: {"env": {**plan.env, "CUDA_VISIBLE_DEVICES": "1"}}, id="devices"),
        pytest.param(lambda plan: {"sections": plan.sections[:-1]}, id="the line"),
        pytest.param(
            lambda plan: {"engine": replace(plan.engine, file=replace(plan.engine.file, mtime_ns=1))},
            id="the engine",
        ),
    ],
)
def test_another_launch_has_another_key(plan: LaunchPlan, change: Any) -> None:
    other = replace(plan, **change(plan))
    assert measurement_key(other, [FILE], [CPU]) != measurement_key(plan, [FILE], [CPU])


def test_another_state_of_a_file_has_another_key(plan: LaunchPlan) -> None:
    keys = {
        measurement_key(plan, files, [CPU]) for files in ([FILE], [replace(FILE, mtime_ns=6)], [FILE, FILE])
    }
    assert len(keys) == 3


def test_devices_that_come_and_go_change_the_key_and_free_memory_does_not(plan: LaunchPlan) -> None:
    card = Device("CUDA0", "gpu", 100, 90)
    key = measurement_key(plan, [FILE], [card, CPU])
    assert key == measurement_key(plan, [FILE], [CPU, replace(card, free_bytes=5)])
    assert key != measurement_key(plan, [FILE], [CPU])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda plan: {"env": {**plan.env, "TERM": "xterm", "PWD": "/"}}, id="a terminal"),
        pytest.param(lambda plan: {"env": {**plan.env, "LLAMA_API_KEY": "k"}}, id="a secret"),
        pytest.param(
            lambda plan: {"sections": (*plan.sections, Section("alias", ("--alias", "x")))}, id="its name"
        ),
        pytest.param(lambda plan: {"replica": 1, "fingerprint": "f" * 64}, id="another replica"),
    ],
)
def test_what_has_no_say_in_memory_does_not_change_the_key(plan: LaunchPlan, change: Any) -> None:
    other = replace(plan, **change(plan))
    assert measurement_key(other, [FILE], [CPU]) == measurement_key(plan, [FILE], [CPU])
