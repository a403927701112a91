"""Sessions of browsers: found by their cookie alone, for as long as they are used."""

from __future__ import annotations

from framework.api.sessions import IDLE_LIMIT_S, SESSIONS_PER_KIND, Sessions


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_cookie_finds_its_session() -> None:
    sessions = Sessions()
    cookie, session = sessions.create("key", "laptop", "d" * 64)
    assert sessions.find(cookie) is session


def test_unknown_and_missing_cookies_find_nothing() -> None:
    sessions = Sessions()
    sessions.create("open", "dashboard")
    assert sessions.find("other") is None
    assert sessions.find("") is None
    assert sessions.find(None) is None


def test_each_session_has_secrets_of_its_own() -> None:
    sessions = Sessions()
    made = [sessions.create("open", "dashboard") for _ in range(3)]
    assert len({cookie for cookie, _ in made} | {session.csrf_token for _, session in made}) == 6


def test_session_ends_after_its_idle_limit() -> None:
    clock = Clock()
    sessions = Sessions(monotonic_s=clock)
    cookie, _ = sessions.create("open", "dashboard")
    clock.now_s = IDLE_LIMIT_S + 1
    assert sessions.find(cookie) is None


def test_use_keeps_a_session() -> None:
    clock = Clock()
    sessions = Sessions(monotonic_s=clock)
    cookie, session = sessions.create("open", "dashboard")
    for _ in range(3):
        clock.now_s += IDLE_LIMIT_S - 1
        assert sessions.find(cookie) is session


def test_signed_out_session_is_gone() -> None:
    sessions = Sessions()
    cookie, _ = sessions.create("token", "token")
    sessions.end(cookie)
    sessions.end(cookie)
    assert sessions.find(cookie) is None


def test_visitors_cannot_push_out_signed_in_people() -> None:
    sessions = Sessions()
    kept, session = sessions.create("key", "laptop", "d" * 64)
    first, _ = sessions.create("open", "dashboard")
    for _ in range(SESSIONS_PER_KIND):
        sessions.create("open", "dashboard")
    assert sessions.find(kept) is session
    assert sessions.find(first) is None


def test_session_in_use_outlives_idle_ones() -> None:
    sessions = Sessions()
    used, session = sessions.create("open", "dashboard")
    for _ in range(SESSIONS_PER_KIND):
        sessions.find(used)
        sessions.create("open", "dashboard")
    assert sessions.find(used) is session


def test_signing_out_everywhere_ends_the_sessions_of_one_key_alone() -> None:
    sessions = Sessions()
    here, session = sessions.create("key", "laptop", "d" * 64)
    # The same key under the name that the manifest had for it before.
    there, _ = sessions.create("key", "old-name", "d" * 64)
    other, kept = sessions.create("key", "phone", "e" * 64)
    token, by_token = sessions.create("token", "token")
    sessions.end_everywhere(session)
    assert (sessions.find(here), sessions.find(there)) == (None, None)
    assert (sessions.find(other), sessions.find(token)) == (kept, by_token)


def test_signing_out_everywhere_with_the_token_ends_all_that_began_with_it() -> None:
    sessions = Sessions()
    first, session = sessions.create("token", "token")
    second, _ = sessions.create("token", "token")
    sessions.end_everywhere(session)
    assert (sessions.find(first), sessions.find(second)) == (None, None)
