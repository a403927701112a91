"""`[server]` keys from environment and command line (01 §2.9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.manifest.load import check_text
from framework.values.manifest import Listener
from framework.values.override import Override
from tests.manifest.reading import VARIABLE, read

FILE = '[server]\nlisten = "127.0.0.1:1"\nmax_waiting = 5\n'


def test_an_override_wins_over_the_file() -> None:
    server = read(FILE, overrides={"listen": "127.0.0.1:9000"}).manifest.server
    assert (server.listen, server.max_waiting) == (Listener("127.0.0.1", 9000), 5)


def test_an_override_needs_no_table() -> None:
    assert read("", overrides={"listen": "127.0.0.1:9000"}).manifest.server.listen.port == 9000


def test_numbers_and_units_are_written_as_text() -> None:
    overrides = {"max_waiting": " 7 ", "shutdown": "5s", "max_body": "1MiB", "start_concurrency": "3"}
    server = read(FILE, overrides=overrides).manifest.server
    assert (server.max_waiting, server.shutdown_s, server.max_body_bytes) == (7, 5.0, 2**20)


@pytest.mark.parametrize(
    ("key", "text", "code"),
    [
        ("listen", "nowhere", "bad_address"),
        ("max_waiting", "many", "wrong_type"),
        ("max_waiting", "0", "out_of_range"),
        ("shutdown", "5", "unit_missing"),
        ("on_exit", "leave", "bad_value"),
        ("tls", "x", "wrong_type"),
        ("lissten", "127.0.0.1:1", "unknown_key"),
    ],
)
def test_a_bad_override_is_named_by_key_and_not_by_a_file(key: str, text: str, code: str) -> None:
    problem = read(FILE, overrides={key: text}).only
    assert (problem.code, problem.path, problem.location) == (code, f"server.{key}", VARIABLE)


def test_problems_of_several_overrides_name_the_origin_of_each() -> None:
    overrides = {"listen": Override("x", "--listen"), "shutdown": Override("5", "PADDOCK_SHUTDOWN")}
    problems = check_text(Path("serve.toml"), "", {}, overrides=overrides).problems
    assert [(one.location, one.path) for one in problems] == [
        ("--listen", "server.listen"),
        ("PADDOCK_SHUTDOWN", "server.shutdown"),
    ]
    assert problems[0].sentence.startswith("--listen: server.listen must be host:port")


def test_an_override_that_opens_the_endpoint_is_refused_as_such() -> None:
    problem = read(FILE, overrides={"listen": "0.0.0.0:80"}).only
    assert (problem.code, problem.file) == ("open_listener", VARIABLE)


def test_an_override_can_close_the_endpoint() -> None:
    assert read('[server]\nlisten = "0.0.0.0:80"', overrides={"listen": "127.0.0.1:80"}).errors == []
