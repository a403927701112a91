"""What is done beside the event loop: everything whose size a client chooses."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from framework.nativeserver.off_loop import LARGE, is_large
from tests.nativeserver.small_world import small_world

PART = "x" * (LARGE // 4)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x" * LARGE, False),
        ("x" * (LARGE + 1), True),
        ([PART] * 5, True),
        ({"a": {"b": [PART] * 3}, "c": [PART, PART]}, True),
        ([1] * (LARGE + 1), True),
        ([[1] * 100] * 100, False),
        (None, False),
    ],
)
def test_all_texts_and_entries_of_a_body_count(value: Any, expected: bool) -> None:
    assert is_large(value) is expected


@pytest.mark.parametrize(("content", "is_beside"), [([PART] * 5, True), (["a"] * 5, False)])
async def test_many_short_texts_are_tokenised_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch, content: list[str], is_beside: bool
) -> None:
    async with small_world() as world:
        inner, threads = world.core.tokenize, set[threading.Thread]()

        def noted(*given: Any) -> list[int]:
            threads.add(threading.current_thread())
            return inner(*given)

        monkeypatch.setattr(world.core, "tokenize", noted)
        await world.post("/tokenize", {"content": content})
        assert (threading.main_thread() not in threads) is is_beside
