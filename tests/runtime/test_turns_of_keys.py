"""Keys take turns among requests that wait for one model (08 §2.10)."""

from __future__ import annotations

import pytest

from framework.runtime.waiting_room import Waiter, in_turn


@pytest.mark.parametrize(
    ("came", "served"),
    [
        pytest.param("", "", id="nobody"),
        pytest.param("aaa", "aaa", id="one key: first come first served"),
        pytest.param("aaab", "abaa", id="a second key does not wait for all of the first"),
        pytest.param("aabbcc", "abcabc", id="three keys"),
        pytest.param("ab-a-b", "ab-a-b", id="requests without a key are one of them"),
    ],
)
def test_keys_take_turns(came: str, served: str) -> None:
    waiters = [Waiter("load", None if key == "-" else key) for key in came]
    assert "".join(waiter.key or "-" for waiter in in_turn(waiters)) == served


def test_within_a_key_the_first_comes_first() -> None:
    first, second = Waiter("load", "a"), Waiter("load", "a")
    assert in_turn([first, second]) == [first, second]
