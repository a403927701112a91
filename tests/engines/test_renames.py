"""The same setting in builds of different times (14 §2)."""

from __future__ import annotations

import pytest

from framework.engines.renames import SETTINGS, instead_of
from tests.engines.eras import caps_of
from tests.fake_engine.eras import Name


@pytest.mark.parametrize(
    ("era", "flag", "value", "instead"),
    [
        pytest.param("newest", "--no-mmap", "", ("--load-mode none",), id="mapping off, after its removal"),
        pytest.param("newest", "--mlock", "", ("--load-mode mlock", "--load-mode mmap+mlock"), id="locking"),
        pytest.param("newest", "-dio", "", ("--load-mode dio",), id="short flag"),
        pytest.param("new", "--load-mode", "none", ("--no-mmap",), id="mapping off, before load modes"),
        pytest.param("new", "--load-mode", "mlock", ("--mlock",), id="locking, before load modes"),
        pytest.param("new", "--load-mode", "auto", (), id="nothing to write for the default"),
        pytest.param(
            "new", "--draft-max", "8", ("--spec-draft-n-max", "--spec-ngram-mod-n-max"), id="split in two"
        ),
        pytest.param("old", "--spec-draft-n-max", "3", ("--draft-max",), id="back to the old name"),
        pytest.param("old", "--spec-ngram-mod-n-match", "24", ("--spec-ngram-size-n",), id="n-gram length"),
        pytest.param("old", "--spec-draft-type-k", "f16", ("--cache-type-k-draft",), id="alias of before"),
        pytest.param("new", "--spec--draft-p-split", "0.1", ("--spec-draft-p-split",), id="a typo of then"),
        pytest.param("plain", "--spec-draft-n-max", "3", (), id="a build that has neither"),
        pytest.param("new", "--nonsense", "", (), id="no setting"),
    ],
)
def test_what_a_build_calls_it(era: Name, flag: str, value: str, instead: tuple[str, ...]) -> None:
    assert instead_of(flag, value, caps_of(era)) == instead


def test_every_setting_has_more_than_one_spelling() -> None:
    assert all(len(set(spellings)) > 1 for spellings in SETTINGS)
