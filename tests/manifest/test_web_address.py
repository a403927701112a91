"""Addresses of programs that are called over HTTP."""

from __future__ import annotations

import pytest

from framework.manifest.bad_value import BadValue
from framework.manifest.web_address import parse_web_address
from tests.manifest.reading import MODEL, read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
        ("https://whisper.lan/base/", "https://whisper.lan/base"),
        ("http://[::1]:9000", "http://[::1]:9000"),
    ],
)
def test_an_address(text: str, expected: str) -> None:
    assert parse_web_address(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:9000",
        "ftp://x",
        "http://",
        "http://u:secret@x",
        "http://x?k=1",
        "http://x#y",
        "http://[::1",
    ],
)
def test_no_address(text: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_web_address(text)
    assert caught.value.code == "bad_address"


def test_a_password_is_not_repeated() -> None:
    problem = read(f'{MODEL}transcription = "http://u:secret@x"\n').only
    assert problem.path == "models.m.transcription"
    assert "secret" not in problem.message + (problem.found or "")


def test_a_model_to_overflow_to_must_exist() -> None:
    problem = read(f'{MODEL}overflow_to = "mm"\n').only
    assert (problem.code, problem.path, problem.suggestion) == (
        "unknown_model",
        "models.m.overflow_to",
        '"m"',
    )
