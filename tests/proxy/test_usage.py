"""Back-filling token counts from timings (08 §12.1-12.2)."""

from __future__ import annotations

from typing import Any

import pytest

from framework.proxy.usage import backfill, cached_tokens, prompt_count, total

CACHED_7 = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 7},
}


@pytest.mark.parametrize(
    ("usage", "timings", "expected"),
    [
        pytest.param(
            None,
            {"predicted_n": 5, "prompt_n": 3},
            {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
            id="no-usage",
        ),
        pytest.param(
            {"completion_tokens": 2}, {"predicted_n": 9}, {"completion_tokens": 2}, id="counted-already"
        ),
        pytest.param(
            {"prompt_tokens": 9},
            {"predicted_n": 0},
            {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9},
            id="nothing-generated",
        ),
        pytest.param(None, {"predicted_n": 5, "prompt_n": 3, "cache_n": 7}, CACHED_7, id="cached-prompt"),
        pytest.param(None, None, None, id="nothing-known"),
        pytest.param(None, {"prompt_ms": 5}, None, id="timings-without-counts"),
        pytest.param(None, {"predicted_n": "5", "prompt_n": None}, None, id="counts-that-are-no-numbers"),
        pytest.param(
            {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 1}},
            {"predicted_n": 5, "prompt_n": 3, "cache_n": 7},
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 1},
            },
            id="details-are-kept",
        ),
    ],
)
def test_missing_counts_come_from_timings(usage: Any, timings: Any, expected: Any) -> None:
    assert backfill(usage, timings) == expected


def test_the_usage_of_the_engine_is_not_changed() -> None:
    usage = {"prompt_tokens": 0}
    backfill(usage, {"predicted_n": 5, "prompt_n": 3})
    assert usage == {"prompt_tokens": 0}


def test_choices_that_are_counted_one_by_one_share_their_prompt() -> None:
    one = {"prompt_tokens": 32, "completion_tokens": 2, "total_tokens": 34}
    assert total([one, one]) == {"prompt_tokens": 32, "completion_tokens": 4, "total_tokens": 36}


def test_every_prompt_of_a_list_is_counted_once() -> None:
    """What b10068 says of two prompts with two choices each, where the cache had a part of the first."""

    def usage(prompt: int, cached: int) -> dict[str, Any]:
        details = {"prompt_tokens_details": {"cached_tokens": cached}}
        return {"prompt_tokens": prompt, "completion_tokens": 3, "total_tokens": prompt + 3, **details}

    told = [usage(3, 2), usage(3, 2), usage(5, 0), usage(5, 0)]
    assert total(told, 2) == {
        "prompt_tokens": 8,
        "completion_tokens": 12,
        "total_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 2},
    }


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [
        ("a", 1),
        (["a", "b", "c"], 3),
        ([1, 2, 3], 1),
        (["a", 5], 1),
        ([[1, 2], [3]], 2),
        ([{"prompt_string": "a"}, "b"], 2),
        ([], 1),
        (None, 1),
    ],
    ids=str,
)
def test_prompts_are_counted_as_the_engine_counts_them(prompt: Any, prompts: int) -> None:
    assert prompt_count(prompt) == prompts


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({"prompt_tokens_details": None}, None),
        ({"prompt_tokens_details": {"cached_tokens": 4}}, 4),
        ({"prompt_tokens_details": {"cached_tokens": "4"}}, None),
    ],
    ids=["no-usage", "null", "number", "text"],
)
def test_cached_tokens_are_read_where_they_are_told(usage: Any, expected: int | None) -> None:
    assert cached_tokens(usage) == expected
