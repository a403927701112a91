"""Tensors over all cards (03 §12)."""

from __future__ import annotations

from typing import Any

import pytest

from framework.planning.memory.settings import GpuBudget, padded
from framework.planning.placement.tensor_split import TensorCosts, TensorPlan, plan_tensor_split

MIB, GIB = 1 << 20, 1 << 30
FULL = (24_000, 24_576)
LAYERS, HEADS, WIDTH = 64, 8, 128
GROWTH_PER_TOKEN = 512 * 2 * 1.5


def cache(tokens: int) -> int:
    return padded(tokens) * LAYERS * HEADS * 2 * WIDTH * 2


def planned(
    weights_gib: int, target: int, *cards: tuple[int, int], known: bool = True, **fields: Any
) -> TensorPlan:
    have = [
        GpuBudget(f"CUDA{place}", free * MIB, total * MIB)
        for place, (free, total) in enumerate(cards or (FULL, FULL))
    ]
    ceiling = fields.pop("ceiling_target", 0)
    costs = TensorCosts(
        weights_bytes=weights_gib * GIB,
        cache=cache if known else None,
        growth=(lambda tokens: int(tokens * GROWTH_PER_TOKEN)) if known else (lambda _: 0),
        reserve_bytes=433 * MIB if known else 0,
        **fields,
    )
    return plan_tensor_split(costs, have, target, ceiling_target=ceiling)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(planned(20, 32_768), (32_768, 32_768, (0, 1), None, True), id="fits"),
        pytest.param(
            planned(20, 32_768, FULL, (12_000, 12_288)),
            (32_768, 32_768, (0, 1), (22_781, 11_150), True),
            id="unequal-cards-get-weights",
        ),
        pytest.param(planned(36, 131_072), (34_560, 34_560, (0, 1), None, True), id="shortened"),
        pytest.param(
            planned(36, 131_072, draft_unsized=True),
            (26_624, 26_624, (0, 1), None, True),
            id="with-a-draft-of-unknown-size",
        ),
        pytest.param(
            planned(36, 131_072, soft_bytes=320 * MIB), (33_280, 33_280, (0, 1), None, True), id="soft"
        ),
        pytest.param(
            planned(60, 131_072), (2048, 2048, (0, 1), (22_826, 22_826), False), id="too-large-at-all"
        ),
        pytest.param(
            planned(20, 4096, ceiling_target=131_072), (4096, 99_328, (0, 1), None, True), id="ceiling"
        ),
        pytest.param(planned(20, 4096, FULL, (100, 24_576)), (4096, 4096, (0,), None, False), id="one-card"),
        pytest.param(planned(20, 0, known=False), (4096, 4096, (0, 1), None, True), id="no-shape"),
    ],
)
def test_vectors(found: TensorPlan, expected: tuple[object, ...]) -> None:
    # The context is searched by the token; caches come in blocks of 256 cells, and so do the vectors.
    blocks = (found.context // 256 * 256, found.ceiling // 256 * 256)
    assert (*blocks, found.cards, found.weights, found.fits) == expected


def test_the_budget_is_what_is_left_for_what_grows() -> None:
    assert planned(36, 131_072).budget_bytes == pytest.approx(9_222_687_293, abs=2)
