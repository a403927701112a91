"""Library directory and kind of a build, by the files beside it (06 §3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.engines.build_kind import inspect_build
from tests.engines.programs import write_program


def build(folder: Path, *libraries: str) -> Path:
    entry = write_program(folder / "llama-server")
    for name in libraries:
        (folder / name).touch()
    return entry


@pytest.mark.parametrize(
    ("libraries", "platform", "vulkan_only"),
    [
        pytest.param([], "linux", False, id="nothing"),
        pytest.param(["libggml-vulkan.so"], "linux", True, id="vulkan alone"),
        pytest.param(["libggml-vulkan.so.0"], "linux", True, id="versioned"),
        pytest.param(["libggml-vulkan.so", "libggml-hip.so.0"], "linux", False, id="with versioned hip"),
        pytest.param(["libggml-vulkan.so", "libggml-cuda.so"], "linux", False, id="with cuda"),
        pytest.param(["libggml-vulkan.dylib"], "linux", False, id="mac library on linux"),
        pytest.param(["libggml-vulkan.0.dylib"], "darwin", True, id="mac library on mac"),
        pytest.param(["libggml-vulkan.so.bak"], "linux", False, id="another file"),
    ],
)
def test_vulkan_only(tmp_path: Path, libraries: list[str], platform: str, vulkan_only: bool) -> None:
    assert inspect_build(build(tmp_path, *libraries), platform=platform).vulkan_only is vulkan_only


@pytest.mark.parametrize(
    ("libraries", "bundled"), [(["libggml-hip.so.1.2"], True), (["libggml-cuda.so"], False), ([], False)]
)
def test_bundled_hip(tmp_path: Path, libraries: list[str], bundled: bool) -> None:
    assert inspect_build(build(tmp_path, *libraries)).bundled_hip is bundled


def test_libraries_are_looked_for_behind_a_link(tmp_path: Path) -> None:
    entry = build(tmp_path / "real", "libggml-vulkan.so")
    (tmp_path / "link").symlink_to(entry)
    kind = inspect_build(tmp_path / "link")
    assert (kind.library_dir, kind.vulkan_only) == (tmp_path / "real", True)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param('exec "$(dirname "$0")/build/bin/llama-server" "$@"', id="dirname"),
        pytest.param('exec "$(dirname -- "$0")/build/bin/llama-server" "$@"', id="dirname with dashes"),
        pytest.param('exec "${0%/*}/build/bin/llama-server" "$@"', id="expansion"),
    ],
)
def test_a_wrapper_leads_to_the_directory_of_its_target(tmp_path: Path, line: str) -> None:
    build(tmp_path / "build/bin", "libggml-hip.so")
    kind = inspect_build(write_program(tmp_path / "llama-server", line))
    assert kind.library_dir == tmp_path / "build/bin"
    assert (kind.via_wrapper, kind.bundled_hip) == (True, True)


def test_a_wrapper_that_runs_something_else_keeps_its_own_directory(tmp_path: Path) -> None:
    kind = inspect_build(write_program(tmp_path / "llama-server", 'exec "$HOME/bin/llama-server" "$@"'))
    assert (kind.library_dir, kind.via_wrapper) == (tmp_path, True)


def test_a_binary_is_no_wrapper(tmp_path: Path) -> None:
    entry = tmp_path / "llama-server"
    entry.write_bytes(b"\x7fELF\0")
    assert inspect_build(entry).via_wrapper is False


def test_a_missing_directory_has_no_libraries(tmp_path: Path) -> None:
    kind = inspect_build(tmp_path / "gone/llama-server")
    assert (kind.vulkan_only, kind.bundled_hip, kind.via_wrapper) == (False, False, False)
