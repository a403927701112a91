"""Search path of an engine's libraries, on hosts laid out in a folder (06 §7.5-7.7, §16.8)."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from framework.engines.library_path import LibraryPath, library_path
from framework.values.engine import EngineBinary, FileId

ENGINE = Path("/engine")


class Host:
    """An empty file system, and an engine of its own outside of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ: dict[str, str] = {}
        self.bundled_hip = True
        self.env: dict[str, str] = {}

    def put(self, *paths: str, text: str = "") -> None:
        for path in paths:
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text, encoding="utf-8")

    def make(self, *folders: str) -> None:
        for folder in folders:
            (self.root / folder).mkdir(parents=True, exist_ok=True)

    def look(self, system: str = "linux") -> LibraryPath:
        file = FileId(ENGINE / "llama-server", 1, 1)
        binary = EngineBinary(file.path, ENGINE, file, "manifest", bundled_hip=self.bundled_hip, env=self.env)
        return library_path(binary, self.environ, root=self.root, prefix=self.root / "venv", system=system)

    def found(self) -> list[str]:
        """Directories below the root, relative to it; the engine's own by its full path."""
        directories = self.look().directories
        return [str(d.relative_to(self.root)) if d.is_relative_to(self.root) else str(d) for d in directories]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_an_empty_host_offers_the_engines_own_directory(host: Host) -> None:
    assert host.found() == ["/engine"]


def test_a_wheel_names_its_directory_first(host: Host) -> None:
    host.env = {"LD_LIBRARY_PATH": "/wheel/lib:", "VK_LAYER": "x"}
    found = host.look()
    assert found.directories == (Path("/wheel/lib"), ENGINE)
    assert found.defaults == {"VK_LAYER": "x"}


def test_cuda_packages_and_the_systems_cuda_come_behind(host: Host) -> None:
    packages = "venv/lib/python3.11/site-packages/nvidia"
    host.make(f"{packages}/cublas/lib", f"{packages}/cudnn/lib", f"{packages}/nvjitlink/lib")
    host.make(f"{packages}/cuda_nvrtc/bin", f"{packages}/nccl/lib")
    targets = f"usr/local/cuda/targets/{platform.machine()}-linux/lib"
    host.make("usr/local/cuda/lib64", targets, "usr/local/cuda-12.8/lib64")
    assert host.found() == [
        "/engine",
        f"{packages}/cublas/lib",
        f"{packages}/cudnn/lib",
        f"{packages}/nvjitlink/lib",
        "usr/local/cuda/lib64",
        targets,
        "usr/local/cuda-12.8/lib64",
    ]


def test_system_rocm_comes_first_with_llvm_right_behind_its_libraries(host: Host) -> None:
    host.put("dev/kfd", "opt/rocm/lib/libhsa-runtime64.so.1")
    host.make("opt/rocm/lib/llvm/lib")
    assert host.found() == ["opt/rocm/lib", "opt/rocm/lib/llvm/lib", "/engine"]


def test_a_configured_rocm_outranks_the_default_one(host: Host) -> None:
    host.put("dev/kfd", "opt/rocm/lib/libhsa-runtime64.so", "mine/lib64/libhsa-runtime64.so")
    host.environ = {"HIP_PATH": str(host.root / "mine"), "ROCM_PATH": ""}
    assert host.found() == ["mine/lib64", "opt/rocm/lib", "/engine"]


def test_the_same_rocm_by_two_names_counts_once(host: Host) -> None:
    host.put("dev/kfd", "opt/rocm/lib/libhsa-runtime64.so")
    host.environ = {"ROCM_PATH": str(host.root / "opt/rocm")}
    assert host.found() == ["opt/rocm/lib", "/engine"]


def test_a_build_without_hip_needs_no_rocm(host: Host) -> None:
    host.put("dev/kfd", "opt/rocm/lib/libhsa-runtime64.so")
    host.bundled_hip = False
    assert host.found() == ["/engine"]


def test_without_the_kernel_driver_there_is_no_rocm(host: Host) -> None:
    host.put("opt/rocm/lib/libhsa-runtime64.so")
    assert host.found() == ["/engine"]


def test_wsl_uses_the_hosts_rocm(host: Host) -> None:
    host.put("dev/dxg", "opt/rocm/lib/librocdxg.so.1")
    host.put("proc/version", text="Linux version 5.15 (Microsoft@Microsoft.com)")
    assert host.found() == ["opt/rocm/lib", "/engine"]
    assert host.look().defaults == {"HSA_ENABLE_DXG_DETECTION": "1"}


def test_wsl_without_its_rocm_library_has_none(host: Host) -> None:
    host.put("dev/dxg", "dev/kfd", "opt/rocm/lib/libhsa-runtime64.so")
    host.put("proc/version", text="microsoft")
    assert host.found() == ["/engine"]
    assert host.look().defaults == {}


@pytest.mark.parametrize("text", [None, "Linux version 6.1 debian"], ids=["unreadable", "no wsl"])
def test_a_dxg_device_alone_is_no_wsl(host: Host, text: str | None) -> None:
    host.put("dev/dxg", "opt/rocm/lib/librocdxg.so")
    if text is not None:
        host.put("proc/version", text=text)
    assert host.found() == ["/engine"]


def test_macos_needs_nothing(host: Host) -> None:
    host.make("usr/local/cuda/lib64")
    assert host.look("darwin") == LibraryPath()
