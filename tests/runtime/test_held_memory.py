"""What a process holds, as the system and the drivers tell."""

from __future__ import annotations

import os
from pathlib import Path

from framework.runtime.held_memory import HostMemory, device_bytes_of, host_memory_of
from framework.values.device import Device

MIB = 2**20


def process(proc: Path, pid: int, status: str, children: str = "") -> None:
    (proc / str(pid) / "task" / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "status").write_text(status, encoding="ascii")
    (proc / str(pid) / "task" / str(pid) / "children").write_text(children, encoding="ascii")


def status_of(anon: int, file: int, shared: int = 0) -> str:
    return f"Name:\tx\nRssAnon:\t{anon} kB\nRssFile:\t{file} kB\nRssShmem:\t{shared} kB\n"


def test_what_is_its_own_is_told_from_pages_of_files(tmp_path: Path) -> None:
    process(tmp_path, 7, status_of(2048, 1024, 1024))
    assert host_memory_of(7, proc=tmp_path) == HostMemory(3 * MIB, MIB)


def test_an_engine_behind_a_wrapper_is_found(tmp_path: Path) -> None:
    process(tmp_path, 7, status_of(1024, 0), "8 9 ")
    process(tmp_path, 8, status_of(4096, 2048))
    assert host_memory_of(7, proc=tmp_path) == HostMemory(5 * MIB, 2 * MIB)


def test_who_is_gone_or_does_not_tell_holds_nothing_that_is_known(tmp_path: Path) -> None:
    process(tmp_path, 7, "Name:\tx\nRssAnon:\tno\n")
    assert host_memory_of(7, proc=tmp_path) is None
    assert host_memory_of(8, proc=tmp_path) is None


def test_this_process_holds_something() -> None:
    found = host_memory_of(os.getpid())
    assert found is not None
    assert found.own_bytes > MIB


def test_drivers_tell_by_process_and_what_they_do_not_tell_is_left_out() -> None:
    pid = os.getpid()
    devices = (
        Device("CUDA0", "gpu", 1, 1, used_by_pid={pid: 5 * MIB, 1: MIB}),
        Device("CUDA1", "gpu", 1, 1, used_by_pid={1: MIB}),
        Device("Vulkan0", "gpu", 1, 1),
    )
    assert device_bytes_of(pid, devices) == {"CUDA0": 5 * MIB}
