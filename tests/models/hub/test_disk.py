"""What fits on the disk, and what would instead (02 §10.3, §11.1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.models.hub.disk import (
    DiskPlan,
    FileSetSize,
    free_bytes,
    smallest_that_fits,
    variant_sizes,
)

GB = 10**9


def variants(**cached: int) -> list[FileSetSize]:
    sizes = {"Q2": 10, "Q4": 40, "Q8": 80}
    return [FileSetSize(name, size * GB, cached.get(name, 0) * GB) for name, size in sizes.items()]


@pytest.mark.parametrize(
    ("free", "cached", "expected"),
    [
        pytest.param(45, {}, "Q2", id="the least to fetch"),
        pytest.param(5, {}, None, id="nothing fits"),
        pytest.param(5, {"Q4": 40}, "Q4", id="one is here"),
        pytest.param(45, {"Q2": 10, "Q4": 40}, "Q4", id="the largest of those that are here"),
        pytest.param(500, {"Q8": 80}, "Q2", id="never one as large as the asked one"),
    ],
)
def test_the_variant_to_use_instead(free: int, cached: dict[str, int], expected: str | None) -> None:
    found = smallest_that_fits(variants(**cached), free_bytes=free * GB, asked_bytes=80 * GB)
    assert (found.main if found else None) == expected


def test_sizes_of_sets_count_what_is_here() -> None:
    sets = [("a-1", "a-2"), ("b",)]
    found = variant_sizes(sets, {"a-1": 5, "a-2": 6, "b": 7}, lambda path: 3 if path == "a-1" else 0)
    assert found == [FileSetSize("a-1", 11, 3), FileSetSize("b", 7, 0)]


@pytest.mark.parametrize(
    ("plan", "need", "fits"),
    [
        pytest.param(DiskPlan(10, 0, 10), 10, True, id="exactly"),
        pytest.param(DiskPlan(10, 0, 9), 10, False, id="one too few"),
        pytest.param(DiskPlan(10, 10, 0), 0, True, id="all of it is here"),
        pytest.param(DiskPlan(10, 12, 0), 0, True, id="more than all of it is here"),
    ],
)
def test_need_and_fit(plan: DiskPlan, need: int, fits: bool) -> None:
    assert (plan.need_bytes, plan.fits) == (need, fits)


def test_free_space_of_a_directory_that_does_not_exist_yet(tmp_path: Path) -> None:
    assert (free_bytes(tmp_path / "a" / "b") or 0) > 0
