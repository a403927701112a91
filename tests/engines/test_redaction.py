"""Secrets do not show (06 §15, §16.6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.engines.redaction import redact_argv, redact_environment, redact_text

HIDDEN = "<redacted>"


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        pytest.param(
            ["--api-key", "k", "--api-key=k2", "--api-key"],
            ("--api-key", HIDDEN, f"--api-key={HIDDEN}", "--api-key"),
            id="every form, and a trailing bare flag",
        ),
        pytest.param(["-hft", "t", "x"], ("-hft", HIDDEN, "x"), id="hub token"),
        pytest.param(["--api_key=k"], (f"--api_key={HIDDEN}",), id="underscore"),
        pytest.param(
            ["--api-key", "--api-key=k"], ("--api-key", HIDDEN), id="the next token is the value, always"
        ),
        pytest.param(["--api-key-file", "/f"], ("--api-key-file", "/f"), id="a path is no secret"),
    ],
)
def test_arguments(tokens: list[str], shown: tuple[str, ...]) -> None:
    assert redact_argv(tokens) == shown


@given(st.lists(st.text(max_size=5)), st.sampled_from(["--api-key", "--hf-token", "-hft"]))
def test_a_value_never_shows(others: list[str], flag: str) -> None:
    secret = "s3cret-value"
    assert all(secret not in token for token in redact_argv([*others, flag, secret, f"{flag}={secret}"]))


@pytest.mark.parametrize("name", ["LLAMA_API_KEY", "hf_token", "MY_SECRET_1", "DB_PASSWORD"])
def test_variables_that_sound_like_secrets(name: str) -> None:
    assert redact_environment({name: "x", "PATH": "/bin"}) == {name: HIDDEN, "PATH": "/bin"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("run it with --api-key abc123 now", f"run it with --api-key {HIDDEN} now"),
        ('--hf-token="abc" -hft  xyz', f'--hf-token="{HIDDEN}" -hft  {HIDDEN}'),
        ("export MY_API_KEY=abc; hf_token='x y'", f"export MY_API_KEY={HIDDEN} hf_token='{HIDDEN} y'"),
        ("the monkey = 5, key: 7, --api-key", "the monkey = 5, key: 7, --api-key"),
        ("--api-key-file /f stays", "--api-key-file /f stays"),
    ],
)
def test_running_text(text: str, shown: str) -> None:
    assert redact_text(text) == shown


def test_text_that_is_made_to_be_slow_is_gone_through_once() -> None:
    # Each of these takes minutes where a name has no bound.
    for text in ("KEY" * 200_000, "A" * 600_000, "a_" * 300_000 + "=", "--api-key " * 60_000):
        assert len(redact_text(text)) >= len(text)
