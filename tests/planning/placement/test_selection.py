"""The fewest cards that have room for a footprint (04 §9)."""

from __future__ import annotations

import pytest

from framework.planning.memory.settings import GpuBudget
from framework.planning.placement.selection import ranked, select_cards

MIB, GIB = 1 << 20, 1 << 30


def cards(*sizes: tuple[int, int]) -> tuple[GpuBudget, ...]:
    return tuple(
        GpuBudget(f"CUDA{place}", free * MIB, total * MIB) for place, (free, total) in enumerate(sizes)
    )


FULL = (24_000, 24_576)


@pytest.mark.parametrize(
    ("footprint_gib", "have", "options", "expected"),
    [
        pytest.param(20, [(24_000, 0), (24_000, 0)], {}, (0,), id="one-is-enough"),
        pytest.param(23, [FULL], {}, None, id="too-large"),
        pytest.param(40, [FULL, (23_000, 24_576)], {"overhead_bytes": 1024 * MIB}, (0, 1), id="two"),
        pytest.param(10, [(15_000, 81_920), (14_500, 16_384)], {}, (1,), id="by-usable-not-by-free"),
        pytest.param(
            10,
            [FULL, FULL, (800, 24_576)],
            {"overhead_bytes": 1024 * MIB, "minimum": 3},
            (0, 1),
            id="a-full-one-is-not-taken-to-reach-a-number",
        ),
        pytest.param(22, [(24_000, 0)], {"fill": 0.92}, None, id="another-fill"),
        pytest.param(10, [(24_000, 0), (24_000, 0)], {"minimum": 2}, (0, 1), id="two-at-least"),
        pytest.param(1, [], {}, None, id="no-cards"),
    ],
)
def test_cards_are_selected(
    footprint_gib: int,
    have: list[tuple[int, int]],
    options: dict[str, int],
    expected: tuple[int, ...] | None,
) -> None:
    assert select_cards(footprint_gib * GIB, cards(*have), **options) == expected  # type: ignore[arg-type]


def test_of_equal_cards_the_first_comes_first() -> None:
    assert ranked(cards(FULL, FULL, FULL), [5, 7, 5]) == [1, 0, 2]
