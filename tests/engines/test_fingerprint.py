"""The same launch has the same fingerprint, another one has not (06 §6.7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.engines.fingerprint import fingerprint
from framework.values.engine import FileId
from framework.values.plan import Section

SECTIONS = (Section("listen", ("--port", "{port}")), Section("slots", ("--parallel", "4")))
ENV = {"A": "1", "B": "2", "MY_TOKEN": "x"}
FILES = (FileId(Path("/a"), 1, 2), FileId(Path("/b"), 3, 4))
PRINT = fingerprint(SECTIONS, ENV, FILES)


def test_the_order_of_variables_and_the_value_of_a_secret_do_not_count() -> None:
    assert fingerprint(SECTIONS, {"MY_TOKEN": "y", "B": "2", "A": "1"}, FILES) == PRINT


@pytest.mark.parametrize(
    ("sections", "env", "files"),
    [
        pytest.param(SECTIONS[::-1], ENV, FILES, id="order of sections"),
        pytest.param((SECTIONS[0], Section("slots", ("--parallel", "5"))), ENV, FILES, id="token"),
        pytest.param(SECTIONS, {**ENV, "A": "3"}, FILES, id="variable"),
        pytest.param(SECTIONS, {"A": "1", "B": "2"}, FILES, id="secret gone"),
        pytest.param(SECTIONS, ENV, (FILES[0], FileId(Path("/b"), 3, 5)), id="file time"),
        pytest.param(SECTIONS, ENV, FILES[:1], id="file gone"),
    ],
)
def test_everything_else_counts(
    sections: tuple[Section, ...], env: dict[str, str], files: tuple[FileId, ...]
) -> None:
    assert fingerprint(sections, env, files) != PRINT


def test_undecodable_names_are_no_obstacle() -> None:
    assert len(fingerprint(SECTIONS, {"A": "\udcff"}, (FileId(Path("/\udcfe"), 1, 1),))) == 64
