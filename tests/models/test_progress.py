"""How far a load has come (02 §13)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from framework.models.progress import ResidentMark, load_progress, resident_bytes

GIB = 2**30


@pytest.mark.parametrize(
    ("mark", "total", "healthy", "phase", "loaded", "fraction"),
    [
        pytest.param(3, 4, False, "mapping", 3, 0.75, id="under way"),
        pytest.param(5, 4, False, "mapping", 4, 1.0, id="more than the files"),
        pytest.param(1, 0, False, "mapping", 1, 0.0, id="unknown size"),
        pytest.param(1, 4, True, "ready", 4, 1.0, id="healthy"),
        pytest.param(1, 0, True, "ready", 1, 1.0, id="healthy, unknown size"),
    ],
)
def test_progress(mark: int, total: int, healthy: bool, phase: str, loaded: int, fraction: float) -> None:
    found = load_progress(mark * GIB, total * GIB, healthy=healthy, file="m.gguf")
    assert (found.phase, found.loaded_bytes, found.fraction) == (phase, loaded * GIB, fraction)
    assert (found.total_bytes, found.file) == (total * GIB, "m.gguf")


def test_the_mark_never_falls_for_one_process() -> None:
    mark = ResidentMark()
    assert [mark.observe(1, size) for size in (5, 9, 4)] == [5, 9, 9]


def test_another_process_starts_afresh() -> None:
    mark = ResidentMark()
    mark.observe(1, 9)
    assert mark.observe(2, 3) == 3


def test_resident_memory_of_this_process() -> None:
    found = resident_bytes(os.getpid())
    assert found is not None
    assert found > 2**20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Name:\tx\nVmRSS:\t  2048 kB\n", 2048 * 1024, id="line"),
        pytest.param("Name:\tx\n", 0, id="no line"),
        pytest.param("VmRSS:\n", 0, id="no number"),
    ],
)
def test_the_line_is_read_from_the_status_file(tmp_path: Path, text: str, expected: int) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/status").write_text(text, encoding="ascii")
    assert resident_bytes(7, proc=tmp_path) == expected


def test_without_proc_the_library_is_asked(tmp_path: Path) -> None:
    assert resident_bytes(os.getpid(), proc=tmp_path)


def test_a_process_that_is_gone_has_no_size(tmp_path: Path) -> None:
    assert resident_bytes(2**30, proc=tmp_path) is None
