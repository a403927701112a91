"""Guesses of keys: a few are typos, many are refused for a while, for one address, save who was there."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from framework.api.auth import sign_in
from framework.api.errors import ApiError
from framework.proxy.errors import ProxyError
from framework.proxy.key_guesses import ADDRESSES, PERIOD_S, RIGHT_KEYS, TRIES, KeyGuesses, network_of
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
    assert 1 <= int(caught.value.headers["retry-after"]) <= PERIOD_S
    assert "try again in" in caught.value.message


def judged(guesses: KeyGuesses, key: str, *, is_right: bool = False, address: str = "a") -> bool:
    """Whether a key is looked at."""
    try:
        guesses.judge(address, key, is_right=is_right)
    except ProxyError:
        return False
    return True


def test_after_a_while_a_key_may_be_tried_again() -> None:
    clock = Clock()
    guesses = KeyGuesses(monotonic_s=clock)
    assert all(judged(guesses, f"wrong {n}") for n in range(TRIES))
    assert not judged(guesses, "one more")
    assert judged(guesses, "one more", address="b")
    clock.now_s = PERIOD_S
    assert judged(guesses, "one more")


def test_who_was_right_before_is_never_kept_out_by_a_guesser_at_the_same_address() -> None:
    guesses = KeyGuesses()
    assert judged(guesses, "right", is_right=True)
    for number in range(3 * TRIES):
        judged(guesses, f"wrong {number}")
        assert judged(guesses, "right", is_right=True)
    # A key that is new there gets no answer: a guesser would learn from it.
    assert not judged(guesses, "another", is_right=True)


def test_a_program_that_goes_on_with_an_old_key_is_no_guesser() -> None:
    guesses = KeyGuesses()
    assert all(judged(guesses, "old") for _ in range(10 * TRIES))
    assert judged(guesses, "new", is_right=True)


def test_right_keys_never_count() -> None:
    world = make_world(key("laptop", "right", "view"))
    assert [guess(world, "right") for _ in range(3 * TRIES)] == [200] * (3 * TRIES)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("", ""),
        ("/run/paddock.sock", "/run/paddock.sock"),
    ],
)
def test_one_guesser_is_a_network(address: str, network: str) -> None:
    assert network_of(address) == network


def test_addresses_and_keys_without_end_take_no_memory_without_end() -> None:
    guesses = KeyGuesses(monotonic_s=Clock())
    for number in range(ADDRESSES + 1):
        for guessed in range(TRIES):
            judged(guesses, f"wrong {guessed}", address=f"address {number}")
    assert judged(guesses, "one more", address="address 0")
    assert not judged(guesses, "one more", address=f"address {ADDRESSES}")
    for number in range(RIGHT_KEYS + 1):
        judged(guesses, "right", is_right=True, address=f"b {number}")
    assert len(guesses._right) == RIGHT_KEYS


async def test_bearer_keys_are_guessed_no_faster_at_the_api_than_on_the_page() -> None:
    world = make_world(key("laptop", "right", "operate"))
    statuses = []
    async with world.client(None) as client:
        for number in range(TRIES + 1):
            for headers in ({"authorization": f"Bearer guess {number}"}, {"x-api-key": f"guess {number}"}):
                statuses.append((await client.get("/api/v1/status", headers=headers)).status_code)
        late = await client.get("/api/v1/status", headers={"authorization": "Bearer right"})
    assert statuses == [401] * 2 * TRIES + [429] * 2
    assert (late.status_code, 1 <= int(late.headers["retry-after"]) <= PERIOD_S) == (429, True)
