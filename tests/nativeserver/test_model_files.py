"""Files that no engine could read are told before a server listens (12 §1.3)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from framework.nativeserver.load_failed import LoadFailed
from framework.nativeserver.model_files import check_files
from tests.support.model_files import write_tiny_gguf


def fault(model: Path, *adapters: Path) -> str:
    with pytest.raises(LoadFailed) as caught:
        check_files({"model_path": str(model), "loras": [(str(path), 1.0) for path in adapters]})
    return caught.value.last_line


def test_a_model_and_its_adapters_pass(tmp_path: Path) -> None:
    file = write_tiny_gguf(tmp_path / "a.gguf")
    check_files({"model_path": str(file), "loras": [(str(file), 0.5)]})


def test_a_folder_is_told_with_a_file_in_it(tmp_path: Path) -> None:
    assert "it is a folder; name the file in it, which has no .gguf file" in fault(tmp_path)
    write_tiny_gguf(tmp_path / "b.gguf")
    write_tiny_gguf(tmp_path / "a.gguf")
    assert fault(tmp_path).endswith("name the file in it, such as 'a.gguf'")


def test_other_files_are_told_by_how_they_begin(tmp_path: Path) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(b"\x1b[2J and more")
    assert fault(file).endswith("it is no GGUF file, which would begin with 'GGUF': it begins with '?[2J'")
    file.write_bytes(b"")
    assert fault(file).endswith("it is empty")


def test_an_adapter_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = write_tiny_gguf(tmp_path / "a.gguf")
    path = tmp_path / "none.gguf"
    assert fault(file, file, path) == (
        f"error: load failed [lora]: failed to load lora adapter '{path}': there is no such file"
    )


def test_a_pipe_is_left_to_the_engine_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    check_files({"model_path": str(tmp_path / "pipe")})
