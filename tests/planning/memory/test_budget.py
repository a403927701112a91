"""What may be planned with (03 §9.4), and the longest context within it (§10)."""

import pytest

from framework.planning.memory.budget import budgets, usable_bytes
from framework.planning.memory.context_fit import ContextFit, bisect, longest_context
from framework.planning.memory.kv_cache import kv_bytes
from framework.planning.memory.settings import CacheSettings, GpuBudget, Hardware
from framework.planning.memory.shape import ModelShape

MIB, GIB = 1 << 20, 1 << 30
SHAPE = ModelShape(n_layers=32, n_kv_heads=8, key_length=128, value_length=128)


def cache(context: int) -> int:
    return kv_bytes(SHAPE, CacheSettings(context))


def usable_mib(free: float, total: int = 0, fraction: float = 0.97) -> int:
    return usable_bytes(int(free * MIB), total * MIB, fraction)


def fitted(requested: int, budget: int, **changes: object) -> tuple[int, bool | None]:
    asked = {"fixed_bytes": 10 * GIB, "cost": cache, **changes}
    found = longest_context(requested, budget, **asked)  # type: ignore[arg-type]
    return found.context, found.fits


def test_a_share_of_the_whole_stays_free() -> None:
    assert usable_mib(16_000, 24_576) / MIB == pytest.approx(15_262.72, abs=0.01)


def test_of_an_unknown_whole_a_share_of_what_is_free() -> None:
    assert usable_mib(16_000) / MIB == 15_520


def test_no_room_is_no_negative_room() -> None:
    assert usable_mib(10, 24_576) == 0


@pytest.mark.parametrize(
    ("requested", "budget", "expected"),
    [
        pytest.param(8192, usable_mib(24_000), (8192, True), id="as asked"),
        pytest.param(131_072, usable_mib(16_000), (42_240, True), id="whole unknown"),
        pytest.param(131_072, usable_mib(16_000, 24_576), (39_936, True), id="whole known"),
        pytest.param(131_072, usable_mib(8_000), (131_072, False), id="the model alone is too large"),
        pytest.param(131_072, usable_mib(10_650), (4096, False), id="90 MiB left"),
        pytest.param(2000, usable_mib(10_650), (2000, False), id="never more than asked"),
        pytest.param(
            131_072, usable_mib(16_000, fraction=0.97 - 0.05), (35_584, True), id="room for a draft"
        ),
        pytest.param(131_072, usable_mib(12_000, fraction=1.0), (14_080, True), id="to the last byte"),
    ],
)
def test_longest_context(requested: int, budget: int, expected: tuple[int, bool]) -> None:
    assert fitted(requested, budget) == expected


def test_longest_context_beside_a_draft() -> None:
    assert fitted(131_072, usable_mib(16_000), cost=lambda c: cache(c) + 4096 * c) == (40_960, True)


def test_longest_context_with_masks() -> None:
    assert fitted(131_072, usable_mib(16_000), cost=lambda c: cache(c) + 1536 * c) == (41_728, True)


def test_a_cache_in_host_memory_is_not_shortened() -> None:
    assert fitted(131_072, usable_mib(100), kv_on_gpu=False) == (131_072, False)


def test_what_cannot_be_estimated_is_left_as_asked() -> None:
    assert fitted(8192, GIB, cost=None) == (8192, None)


def test_the_answer_says_what_was_used() -> None:
    found = longest_context(8192, 12 * GIB, 10 * GIB, cache)
    assert found == ContextFit(8192, True, 11 * GIB, 12 * GIB)


@pytest.mark.parametrize(("limit", "expected"), [(0, 1), (1, 1), (5, 5), (9, 9), (12, 10)])
def test_bisection(limit: int, expected: int) -> None:
    assert bisect(1, 10, lambda number: number <= limit) == expected


def test_budgets_of_all_devices() -> None:
    hardware = Hardware(
        (GpuBudget("CUDA0", 20 * GIB, 24 * GIB), GpuBudget("CUDA1", 10 * GIB)),
        host_free_bytes=30 * GIB,
        fill_fraction=0.5,
        reserves_bytes={"CUDA0": GIB, "CPU": 2 * GIB},
    )
    assert budgets(hardware) == {"CUDA0": 7 * GIB, "CUDA1": 5 * GIB, "CPU": 28 * GIB}


def test_unknown_host_memory_has_no_budget() -> None:
    assert budgets(Hardware()) == {}
