"""Origins of pages as `server.cors` takes them."""

from __future__ import annotations

from typing import Any

import pytest

from framework.manifest.bad_value import BadValue
from framework.manifest.origins import parse_origin
from tests.manifest.reading import read

KEYED = '[access.a]\nkey = "env:K"\n'


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://Chat.Example", "https://chat.example"),
        ("https://chat.example:443", "https://chat.example"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("*", "*"),
    ],
)
def test_an_origin_is_kept_as_browsers_send_it(text: str, origin: str) -> None:
    assert parse_origin(text) == origin


@pytest.mark.parametrize(
    "value",
    [
        "",
        "chat.example",
        "https://",
        "https://a/b",
        "https://a b",
        "null",
        "ftp://a",
        "https://*.a.b",
        5,
        None,
    ],
    ids=repr,
)
def test_anything_else_is_none(value: Any) -> None:
    with pytest.raises(BadValue):
        parse_origin(value)


def test_a_slash_at_its_end_is_pointed_out() -> None:
    problem = read('[server]\ncors = ["https://chat.example/"]').only
    assert problem.suggestion == '"https://chat.example"'


def test_all_pages_of_the_world_need_keys() -> None:
    problem = read('[server]\ncors = ["*"]').only
    assert (problem.code, problem.path) == ("open_to_pages", "server.cors")
    assert read(f'[server]\ncors = ["*"]\n{KEYED}', {"K": "k"}).errors == []


def test_they_reach_the_manifest_once_each() -> None:
    text = f'[server]\ncors = ["https://a.b", "https://A.B", "http://c"]\n{KEYED}'
    assert read(text, {"K": "k"}).manifest.server.cors == ("https://a.b", "http://c")
