"""Guesses on the sign-in page: a few are typos, many are refused for a while, for one address alone."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from framework.api.auth import sign_in
from framework.api.errors import ApiError
from framework.api.sign_in_tries import ADDRESSES, PERIOD_S, TRIES, SignInTries
from tests.api.world import World, key, make_world


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def form(address: str = "192.0.2.1") -> Request:
    """A sign-in form of our own page, sent from an address."""
    headers = [(b"host", b"127.0.0.1:8080"), (b"sec-fetch-site", b"same-origin")]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "scheme": "http"}
    return Request({**scope, "client": (address, 1), "query_string": b""})


def guess(world: World, typed: str, address: str = "192.0.2.1") -> int:
    """Type a key; 200 when it opens a session, else the status of the refusal."""
    try:
        sign_in(form(address), world.services, typed)
    except ApiError as error:
        return error.status
    return 200


def test_wrong_keys_are_refused_faster_than_they_can_be_guessed() -> None:
    world = make_world(key("laptop", "right", "view"))
    assert [guess(world, f"guess {n}") for n in range(TRIES + 2)] == [401] * TRIES + [429] * 2
    assert guess(world, "right") == 429
    assert guess(world, "right", "192.0.2.2") == 200


def test_a_refusal_says_when_to_come_again() -> None:
    world = make_world(key("laptop", "right", "view"))
    for number in range(TRIES):
        guess(world, f"guess {number}")
    with pytest.raises(ApiError) as caught:
        sign_in(form(), world.services, "right")
    assert 1 <= int(caught.value.headers["Retry-After"]) <= PERIOD_S
    assert "try again in" in caught.value.message


def test_after_a_while_a_key_may_be_typed_again() -> None:
    clock = Clock()
    tries = SignInTries(monotonic_s=clock)
    for _ in range(TRIES):
        assert tries.wait_s("a") == 0
        tries.note_wrong("a")
    assert tries.wait_s("a") == PERIOD_S
    assert tries.wait_s("b") == 0
    clock.now_s = PERIOD_S
    assert tries.wait_s("a") == 0


def test_right_keys_never_count() -> None:
    world = make_world(key("laptop", "right", "view"))
    assert [guess(world, "right") for _ in range(3 * TRIES)] == [200] * (3 * TRIES)


def test_addresses_without_end_take_no_memory_without_end() -> None:
    tries = SignInTries(monotonic_s=Clock())
    for number in range(ADDRESSES + TRIES):
        for _ in range(TRIES):
            tries.note_wrong(f"address {number}")
    assert tries.wait_s("address 0") == 0
    assert tries.wait_s(f"address {ADDRESSES + 1}") > 0
